//! Languages: which stemmer and stop words go with a word, guessed without a model.
//!
//! The script decides where a script has one language here; among the others, the words that are
//! stop words and the letters that only some alphabets have are counted. A wrong guess costs
//! little: a query's words are looked up in every language that a partition's texts were read in.

use std::collections::HashMap;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};

use super::stop_words::STOP_WORDS;

/// A language that texts are stemmed in. The order breaks ties between guesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // The names say it.
#[repr(u8)]
pub enum Language {
    English,
    German,
    French,
    Spanish,
    Portuguese,
    Italian,
    Dutch,
    Swedish,
    Danish,
    Norwegian,
    Finnish,
    Polish,
    Czech,
    Romanian,
    Hungarian,
    Turkish,
    Russian,
    Ukrainian,
    Greek,
}

/// The writing system of a word, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Latin,
    Cyrillic,
    Greek,
    Other,
}

impl Script {
    /// The script of a word: that of its first letter.
    pub fn of(word: &str) -> Self {
        match word.chars().next().map_or(0, u32::from) {
            // Basic Latin to Latin Extended-B and IPA, Latin Extended Additional.
            0x41..=0x02AF | 0x1E00..=0x1EFF => Self::Latin,
            0x0400..=0x052F => Self::Cyrillic,
            0x0370..=0x03FF | 0x1F00..=0x1FFF => Self::Greek,
            _ => Self::Other,
        }
    }

    /// The languages that are written in it.
    pub fn languages(self) -> Languages {
        match self {
            Self::Latin => Languages((1 << Language::Russian as u32) - 1),
            Self::Cyrillic => Languages::of(Language::Russian).with(Language::Ukrainian),
            Self::Greek => Languages::of(Language::Greek),
            Self::Other => Languages::NONE,
        }
    }
}

/// Every language with its stemmer, in the enum's order.
const ALL: [(Language, Algorithm); Language::COUNT] = [
    (Language::English, Algorithm::English),
    (Language::German, Algorithm::German),
    (Language::French, Algorithm::French),
    (Language::Spanish, Algorithm::Spanish),
    (Language::Portuguese, Algorithm::Portuguese),
    (Language::Italian, Algorithm::Italian),
    (Language::Dutch, Algorithm::Dutch),
    (Language::Swedish, Algorithm::Swedish),
    (Language::Danish, Algorithm::Danish),
    (Language::Norwegian, Algorithm::Norwegian),
    (Language::Finnish, Algorithm::Finnish),
    (Language::Polish, Algorithm::Polish),
    (Language::Czech, Algorithm::Czech),
    (Language::Romanian, Algorithm::Romanian),
    (Language::Hungarian, Algorithm::Hungarian),
    (Language::Turkish, Algorithm::Turkish),
    (Language::Russian, Algorithm::Russian),
    (Language::Ukrainian, Algorithm::Ukrainian),
    (Language::Greek, Algorithm::Greek),
];

impl Language {
    /// How many there are.
    pub const COUNT: usize = 19;

    pub(crate) fn stemmer(self) -> Stemmer {
        Stemmer::new(ALL[self as usize].1)
    }

    /// Whether a lower-case word says too little to be searched for in this language.
    pub(crate) fn is_stop_word(self, word: &str) -> bool {
        stop_word_of(word).contains(self)
    }
}

/// A set of languages, as a mask: bit n for the language of number n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Languages(pub u32);

impl Languages {
    /// Every language.
    pub const ALL: Self = Self((1 << Language::COUNT) - 1);

    /// No language.
    pub const NONE: Self = Self(0);

    /// One language.
    #[must_use]
    pub const fn of(language: Language) -> Self {
        Self(1 << language as u32)
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, language: Language) -> Self {
        Self(self.0 | Self::of(language).0)
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether a language is one of them.
    #[must_use]
    pub const fn contains(self, language: Language) -> bool {
        self.and(Self::of(language)).0 != 0
    }

    /// Each of them, in the enum's order.
    pub fn iter(self) -> impl Iterator<Item = Language> {
        ALL.into_iter()
            .map(|(language, _)| language)
            .filter(move |language| self.contains(*language))
    }
}

/// The languages in which a word is a stop word.
fn stop_word_of(word: &str) -> Languages {
    static WORDS: LazyLock<HashMap<&str, Languages>> = LazyLock::new(|| {
        let mut known: HashMap<&str, Languages> = HashMap::new();
        for (language, words) in STOP_WORDS {
            for word in words.split_whitespace() {
                let languages = known.entry(word).or_default();
                *languages = languages.with(*language);
            }
        }
        known
    });
    WORDS.get(word).copied().unwrap_or_default()
}

/// The languages whose alphabet a letter tells of.
fn letter_of(letter: char) -> Languages {
    use Language as L;
    let among = |languages: &[Language]| {
        languages
            .iter()
            .fold(Languages::NONE, |set, language| set.with(*language))
    };
    match letter {
        'ß' => among(&[L::German]),
        'ä' => among(&[L::German, L::Swedish, L::Finnish]),
        'ö' => among(&[L::German, L::Swedish, L::Finnish, L::Hungarian, L::Turkish]),
        'ü' => among(&[L::German, L::Hungarian, L::Turkish]),
        'å' => among(&[L::Swedish, L::Danish, L::Norwegian]),
        'æ' | 'ø' => among(&[L::Danish, L::Norwegian]),
        'ñ' => among(&[L::Spanish]),
        'ã' | 'õ' => among(&[L::Portuguese]),
        'ç' => among(&[L::French, L::Portuguese, L::Turkish]),
        'ê' | 'â' => among(&[L::French, L::Portuguese]),
        'è' | 'ù' => among(&[L::French, L::Italian]),
        'œ' | 'ë' | 'ï' | 'û' => among(&[L::French]),
        'ì' | 'ò' => among(&[L::Italian]),
        'ą' | 'ę' | 'ł' | 'ż' | 'ź' | 'ś' | 'ć' | 'ń' => among(&[L::Polish]),
        'ř' | 'ě' | 'ů' | 'č' | 'ž' | 'š' | 'ý' => among(&[L::Czech]),
        'ő' | 'ű' => among(&[L::Hungarian]),
        'ă' | 'ț' | 'ș' | 'ţ' => among(&[L::Romanian]),
        'î' => among(&[L::French, L::Romanian]),
        'ğ' | 'ı' | 'ş' => among(&[L::Turkish]),
        'ы' | 'э' | 'ъ' | 'ё' => among(&[L::Russian]),
        'і' | 'ї' | 'є' | 'ґ' => among(&[L::Ukrainian]),
        _ => Languages::NONE,
    }
}

/// A stop word tells more of a language than a letter, which names bring along.
const STOP_WORD_EVIDENCE: u32 = 2;

/// What the words of a text say of its languages.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    counts: [u32; Language::COUNT],
    scripts: [bool; 3],
}

impl Evidence {
    /// Takes in that a script occurs, that of a word.
    pub fn add_script(&mut self, word: &str) {
        let script = Script::of(word);
        if script != Script::Other {
            self.scripts[script as usize] = true;
        }
    }

    /// Takes a plain lower-case word in.
    pub fn add(&mut self, word: &str) {
        self.add_script(word);
        if Script::of(word) == Script::Other {
            return;
        }
        self.count(stop_word_of(word), STOP_WORD_EVIDENCE);
        if !word.is_ascii() {
            for letter in word.chars() {
                self.count(letter_of(letter), 1);
            }
        }
    }

    fn count(&mut self, languages: Languages, weight: u32) {
        let mut left = languages.0;
        while left != 0 {
            self.counts[left.trailing_zeros() as usize] += weight;
            left &= left - 1;
        }
    }

    /// The likeliest of some languages for each script that occurs; the first in order where
    /// nothing tells.
    pub fn languages(&self, among: Languages) -> Languages {
        [Script::Latin, Script::Cyrillic, Script::Greek]
            .into_iter()
            .filter(|script| self.scripts[*script as usize])
            .filter_map(|script| {
                // Of equal ones `max_by_key` takes the last.
                let languages: Vec<Language> = script.languages().and(among).iter().collect();
                let count = |language: &Language| self.counts[*language as usize];
                languages.into_iter().rev().max_by_key(count)
            })
            .fold(Languages::NONE, Languages::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(text: &str) -> Vec<Language> {
        let mut evidence = Evidence::default();
        text.to_lowercase()
            .split_whitespace()
            .for_each(|word| evidence.add(word));
        evidence.languages(Languages::ALL).iter().collect()
    }

    #[test]
    fn languages_are_in_the_order_of_their_numbers() {
        for (number, (language, _)) in ALL.into_iter().enumerate() {
            assert_eq!(language as usize, number);
            assert!(STOP_WORDS.iter().any(|(known, _)| *known == language));
        }
    }

    #[test]
    fn a_sentence_tells_its_language() {
        for (text, language) in [
            ("the cat sat on the mat and it was happy", Language::English),
            ("der hund ist auf dem sofa und schläft", Language::German),
            ("le chat est sur la table avec une souris", Language::French),
            ("el perro está en la casa con los niños", Language::Spanish),
            (
                "o cachorro não está em casa com as crianças",
                Language::Portuguese,
            ),
            ("il gatto è sul tavolo con gli amici", Language::Italian),
            ("de hond is op het bed en slaapt niet", Language::Dutch),
            ("hunden är på soffan och han sover inte", Language::Swedish),
            (
                "hunden er på sofaen og sover ikke af sig selv",
                Language::Danish,
            ),
            ("pies jest na łóżku i nie śpi", Language::Polish),
            (
                "pes je na posteli a nespí, protože má hlad",
                Language::Czech,
            ),
            ("köpek evde ve çok mutlu", Language::Turkish),
            ("собака не хочет в дом и спит", Language::Russian),
            ("собака не хоче в дім і спить", Language::Ukrainian),
            ("ο σκύλος είναι στο σπίτι", Language::Greek),
        ] {
            assert_eq!(guess(text), [language], "{text}");
        }
    }

    #[test]
    fn without_a_sign_it_is_the_first_of_the_script() {
        assert_eq!(guess("pizza"), [Language::English]);
        assert_eq!(guess("борщ pizza"), [Language::English, Language::Russian]);
        assert_eq!(guess("123 東京"), []);
    }
}
