//! Terms: what words are indexed and looked up as.
//!
//! A plain word is stemmed in the language of its text and script, then written without accents
//! and ligatures, so that "São" and "sao", "Straße" and "strasse" are one. Literal words are
//! only written so.
//!
//! A query is too short to tell its language, so each of its words is read in every language that
//! texts were read in: it stands for all terms that it would be in one of them. Stop words are
//! terms of a text, and left out of a query that has other words.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::language::{Evidence, Language, Languages, Script};
use super::words::{Kind, Words};
use crate::limits::STEM_BYTES_MAX;

/// A text's words and the languages that they were taken for.
pub(super) struct Reading {
    words: Words,
    pub languages: Languages,
}

impl Reading {
    /// Reads a text in one language of each script, out of those.
    pub fn of(text: &str, among: Languages) -> Self {
        let words = Words::of(text);
        let mut evidence = Evidence::default();
        for (kind, word) in words.iter() {
            match kind {
                Kind::Plain => evidence.add(word),
                Kind::Part => evidence.add_script(word),
                Kind::Literal => {}
            }
        }
        Self {
            languages: evidence.languages(among),
            words,
        }
    }

    /// Each word with the language that it is of; none where no stemmer is for it.
    pub fn words(&self) -> impl Iterator<Item = (Option<Language>, &str)> {
        self.words.iter().map(|(kind, word)| {
            let language = match kind {
                Kind::Plain | Kind::Part => {
                    let of_script = Script::of(word).languages();
                    self.languages.and(of_script).iter().next()
                }
                Kind::Literal => None,
            };
            (language, word)
        })
    }
}

/// The term of a word in a language; none: the word stands for itself.
pub(super) fn term_of(language: Option<Language>, word: &str) -> Cow<'_, str> {
    let Some(language) = language else {
        return without_accents(Cow::Borrowed(word));
    };
    let word = without_elision(language, word);
    if word.len() > STEM_BYTES_MAX {
        return without_accents(Cow::Borrowed(word));
    }
    match portuguese_singular(language, word) {
        Some(word) => Cow::Owned(without_accents(language.stemmer().stem(&word)).into_owned()),
        None => without_accents(language.stemmer().stem(word)),
    }
}

/// The terms of a text, in its order, and the languages that it was read in.
#[must_use]
pub fn tokenize(text: &str) -> (Vec<String>, Languages) {
    let reading = Reading::of(text, Languages::ALL);
    let terms = reading
        .words()
        .map(|(language, word)| term_of(language, word).into_owned());
    (terms.collect(), reading.languages)
}

/// The words of a query, for texts that were read in these languages: for each the terms that it
/// stands for, one at least. No two words stand for the same terms.
///
/// Words that are stop words in the query's own language, which is one of those, are left out
/// where there are others.
#[must_use]
pub fn query_words(text: &str, languages: Languages) -> Vec<Vec<String>> {
    let reading = Reading::of(text, languages);
    let is_stop_word = |language: Option<Language>, word: &str| {
        language.is_some_and(|language| language.is_stop_word(without_elision(language, word)))
    };
    let has_others = reading
        .words()
        .any(|(language, word)| !is_stop_word(language, word));
    let mut found: Vec<Vec<String>> = Vec::new();
    for (language, word) in reading.words() {
        if has_others && is_stop_word(language, word) {
            continue;
        }
        let terms = terms_of(language, word, languages);
        if !found.contains(&terms) {
            found.push(terms);
        }
    }
    found
}

/// The terms that a query's word stands for.
fn terms_of(language: Option<Language>, word: &str, languages: Languages) -> Vec<String> {
    if language.is_none() {
        return vec![term_of(None, word).into_owned()];
    }
    let mut terms: Vec<String> = Vec::new();
    for language in languages.and(Script::of(word).languages()).iter() {
        let term = term_of(Some(language), word);
        if terms.iter().all(|known| *known != term) {
            terms.push(term.into_owned());
        }
    }
    terms
}

/// A French or Italian word without the article or pronoun that is joined to it.
fn without_elision(language: Language, word: &str) -> &str {
    const JOINED: &[&str] = &[
        "l", "d", "j", "m", "t", "s", "n", "c", "qu", "jusqu", "lorsqu", "puisqu", "un", "dell",
        "all", "nell", "sull", "dall", "quell",
    ];
    match (language, word.split_once('\'')) {
        (Language::French | Language::Italian, Some((joined, rest)))
            if !rest.is_empty() && JOINED.contains(&joined) =>
        {
            rest
        }
        _ => word,
    }
}

/// The singular of the Portuguese plurals that Snowball's stemmer leaves apart: viagens, aviões.
fn portuguese_singular(language: Language, word: &str) -> Option<String> {
    if language != Language::Portuguese {
        return None;
    }
    [
        ("ens", "em"),
        ("ins", "im"),
        ("ons", "om"),
        ("uns", "um"),
        ("ões", "ão"),
        ("ães", "ão"),
    ]
    .into_iter()
    .find_map(|(plural, singular)| {
        let stem = word.strip_suffix(plural).filter(|stem| !stem.is_empty())?;
        Some(format!("{stem}{singular}"))
    })
}

/// A term without the marks that many leave out when they type. In Cyrillic only ё is one: the
/// others make letters of their own.
fn without_accents(term: Cow<'_, str>) -> Cow<'_, str> {
    if term.is_ascii() {
        return term;
    }
    match Script::of(&term) {
        Script::Cyrillic => Cow::Owned(term.replace('ё', "е")),
        Script::Other => term,
        Script::Latin | Script::Greek => {
            let mut plain = String::with_capacity(term.len());
            for letter in term.nfd().filter(|c| !is_combining_mark(*c)) {
                match letter {
                    'ß' => plain.push_str("ss"),
                    'æ' => plain.push_str("ae"),
                    'œ' => plain.push_str("oe"),
                    'ø' => plain.push('o'),
                    'ł' => plain.push('l'),
                    'đ' | 'ð' => plain.push('d'),
                    'ı' => plain.push('i'),
                    'þ' => plain.push_str("th"),
                    other => plain.push(other),
                }
            }
            Cow::Owned(plain)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(text: &str) -> String {
        tokenize(text).0.join(" ")
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        for (one, other) in [
            ("the running shoes", "she runs in a shoe"),
            (
                "não gosto de viagens em família",
                "as famílias e a viagem que eu gosto",
            ),
            ("я люблю красивые книги", "мы любим красивую книгу"),
            ("l'homme est dans la maison", "les hommes et les maisons"),
            ("die Häuser sind schön", "das Haus ist schöner"),
        ] {
            let (one, other) = (terms(one), terms(other));
            let shared = one
                .split(' ')
                .filter(|term| other.split(' ').any(|o| o == *term));
            assert!(shared.count() >= 2, "{one} | {other}");
        }
    }

    #[test]
    fn accents_are_no_difference() {
        assert_eq!(
            terms("Zoë Kraków Øystein Straße"),
            terms("zoe krakow oystein strasse")
        );
        assert_eq!(terms("ёлка"), terms("елка"));
        assert_ne!(terms("йод"), terms("иод"));
    }

    #[test]
    fn a_query_is_read_in_the_languages_of_the_texts() {
        let languages = Languages::of(Language::English).with(Language::Portuguese);
        let words = |text, languages| {
            let words = query_words(text, languages).into_iter();
            words.map(|terms| terms.join("|")).collect::<Vec<_>>()
        };
        assert_eq!(
            words("the viagens viagens ORD-1", languages),
            ["viagen|viag", "ord-1", "ord", "1"]
        );
        // Nothing was read in a language of this script: nothing has the word, which still counts.
        assert_eq!(words("viagens 7", Languages::NONE), ["viagens", "7"]);
        // A stop word of a language that nothing was read in is none, and all of them are kept
        // where there is nothing else.
        assert_eq!(
            words("die hard", Languages::of(Language::English)),
            ["die", "hard"]
        );
        assert_eq!(
            words("who are you", Languages::of(Language::English)),
            ["who", "are", "you"]
        );
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in any::<String>(), letters in "[a-zäöüßçñãéèêøåłżšěğıőа-яёіїєґά-ώ' .-]{0,60}") {
            let both = format!("{text} {letters}");
            let (terms, languages) = tokenize(&both);
            prop_assert!(terms.iter().all(|term| !term.is_empty()));
            // A text answers itself: when it is the query, each of its words finds it.
            let words = query_words(&both, languages);
            prop_assert_eq!(words.is_empty(), terms.is_empty());
            for word in words {
                prop_assert!(word.iter().any(|term| terms.contains(term)), "{:?}", word);
            }
        }

        #[test]
        fn every_stemmer_takes_any_word(word in "[a-zäöüßçñãéèêøåłżšěğıőа-яёіїєґά-ώ'\u{300}-\u{308}]{0,12}", any in any::<String>()) {
            for number in 0..Language::COUNT {
                for language in Languages(1 << number).iter() {
                    term_of(Some(language), &word);
                    term_of(Some(language), &any);
                }
            }
        }
    }
}
