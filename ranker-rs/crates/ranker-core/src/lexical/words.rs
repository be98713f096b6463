//! Words of a text: where they begin and end, before any language is thought of.
//!
//! Word boundaries are those of Unicode (UAX #29), joined again where something that people look
//! for as a whole was cut: an order number, an address, a version, a date. Such a whole is a word
//! beside its parts. Scripts that don't separate words are cut into pairs of characters.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::limits::WORD_BYTES_MAX;

/// What can be done with a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters: it may be a stop word and it may be stemmed.
    Plain,
    /// Letters of something longer that isn't prose: stemmed, and no sign of a language.
    Part,
    /// An identifier, a number, a piece of a script without spaces: it stands for itself.
    Literal,
}

/// The words of one text, in its order.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// All words, end to end.
    letters: String,
    /// Where each ends.
    ends: Vec<(usize, Kind)>,
}

/// What may stand between the parts of a whole.
const CONNECTORS: &[u8] = b"-_/.@:+&'#";

/// Those of them that words of plain prose are joined with: the whole is no word of its own.
const PROSE_CONNECTORS: &[char] = &['-', '/', '\''];

impl Words {
    /// The words of a text.
    pub fn of(text: &str) -> Self {
        let text = normalised(text);
        let mut words = Self::default();
        let mut run = 0..0;
        for (start, word) in text.unicode_word_indices() {
            if run.is_empty() || !joins(&text.as_bytes()[run.end..start]) {
                words.add_run(&text[run]);
                run = start..start;
            }
            run.end = start + word.len();
        }
        words.add_run(&text[run]);
        words
    }

    /// Each word.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |(end, kind)| {
            let word = &self.letters[start..*end];
            start = *end;
            (*kind, word)
        })
    }

    fn push(&mut self, kind: Kind, word: &str) {
        let (mut kind, mut end) = (kind, word.len());
        if end > WORD_BYTES_MAX {
            end = WORD_BYTES_MAX;
            while !word.is_char_boundary(end) {
                end -= 1;
            }
            kind = Kind::Literal;
        }
        self.letters.push_str(&word[..end]);
        self.ends.push((self.letters.len(), kind));
    }

    /// Adds the words of a stretch without blanks.
    fn add_run(&mut self, run: &str) {
        if let Some((date, time)) = split_instant(run) {
            self.add_compound(date);
            self.add_compound(time);
            return;
        }
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let is_unspaced = is_unspaced(first);
            let end = rest
                .find(|other| self::is_unspaced(other) != is_unspaced)
                .unwrap_or(rest.len());
            if is_unspaced {
                self.add_pairs(&rest[..end]);
            } else {
                self.add_compound(&rest[..end]);
            }
            rest = &rest[end..];
        }
    }

    /// Adds each pair of neighbouring characters, and each ideograph, which is a word by itself.
    fn add_pairs(&mut self, run: &str) {
        let starts: Vec<usize> = run.char_indices().map(|(start, _)| start).collect();
        let end_of = |place: usize| starts.get(place).copied().unwrap_or(run.len());
        for (place, character) in run.chars().enumerate() {
            if starts.len() == 1 || is_ideograph(character) {
                self.push(Kind::Literal, &run[starts[place]..end_of(place + 1)]);
            }
            if place + 1 < starts.len() {
                self.push(Kind::Literal, &run[starts[place]..end_of(place + 2)]);
            }
        }
    }

    /// Adds the parts of a stretch of letters, digits and connectors, and the whole where it is
    /// something of its own.
    fn add_compound(&mut self, run: &str) {
        let without_commas = without_thousands_commas(run);
        let run = without_commas.as_deref().unwrap_or(run);
        let run = run.trim_matches(|c: char| !c.is_alphanumeric());
        let is_part = |c: char| c.is_alphanumeric() || c == '\'' || is_combining_mark(c);
        let parts = || {
            run.split(|c| !is_part(c))
                .map(|part| part.trim_matches('\''))
                .filter(|part| !part.is_empty())
        };
        let count = parts().count();
        if count < 2 {
            parts().for_each(|part| self.push(kind_of(part, Kind::Plain), part));
            return;
        }
        let joints = || run.chars().filter(|c| !is_part(*c));
        if joints().all(|c| c == '.') && parts().all(is_one_letter) {
            let letters: String = parts().collect();
            self.push(Kind::Literal, &letters);
            return;
        }
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_decimal = count == 2 && joints().eq(['.']) && parts().all(is_number);
        if is_decimal {
            self.push(Kind::Literal, run);
            return;
        }
        let is_whole = run.chars().any(char::is_numeric)
            || joints().any(|joint| !PROSE_CONNECTORS.contains(&joint));
        if is_whole && run.len() <= WORD_BYTES_MAX {
            self.push(Kind::Literal, run);
        }
        let of_letters = if is_whole { Kind::Part } else { Kind::Plain };
        for part in parts() {
            // "03" of a date is the "3" of another way to write it.
            let bare = part.strip_prefix('0').filter(|bare| bare.len() == 1);
            let part = bare.filter(|bare| is_number(bare)).unwrap_or(part);
            self.push(kind_of(part, of_letters), part);
        }
    }
}

/// The text in one form of writing: compatibility forms, case and apostrophes made equal,
/// invisible characters that cut words taken out.
fn normalised(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let is_visible = |c: &char| !matches!(c, '\u{ad}' | '\u{200b}' | '\u{feff}');
    let text: String = text
        .nfkc()
        .filter(is_visible)
        .map(|c| {
            if matches!(c, '’' | 'ʼ' | '‘') {
                '\''
            } else {
                c
            }
        })
        .collect();
    // A capital may lower to a letter and a mark, which compose no further.
    text.to_lowercase()
}

/// Whether words with this between them belong together.
fn joins(gap: &[u8]) -> bool {
    match gap {
        [] => true,
        [one] => CONNECTORS.contains(one),
        _ => false,
    }
}

/// The kind of a stretch of letters or digits, given that of one of letters.
fn kind_of(part: &str, of_letters: Kind) -> Kind {
    if part.chars().any(char::is_numeric) {
        Kind::Literal
    } else {
        of_letters
    }
}

fn is_one_letter(part: &str) -> bool {
    let mut letters = part.chars();
    letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none()
}

/// Date and time of day of an instant as ISO 8601 writes it.
fn split_instant(run: &str) -> Option<(&str, &str)> {
    let (date, time) = run.split_once('t')?;
    let date_fits = date.len() == 10
        && date.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let time_fits = time.as_bytes().first().is_some_and(u8::is_ascii_digit);
    (date_fits && time_fits).then_some((date, time))
}

/// A number without the commas between its thousands; none where there are no such commas.
fn without_thousands_commas(run: &str) -> Option<String> {
    let (whole, fraction) = run.split_once('.').unwrap_or((run, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=3).contains(&first.len())
        && whole.contains(',')
        && is_number(first)
        && is_number(fraction)
        && groups.all(|group| group.len() == 3 && is_number(group));
    fits.then(|| run.replace(',', ""))
}

/// Whether a character is of a script that doesn't separate words by blanks, or, as Korean, joins
/// them with what surrounds them.
fn is_unspaced(character: char) -> bool {
    is_ideograph(character)
        || matches!(u32::from(character),
            0x0E00..=0x0EFF          // Thai, Lao
            | 0x1000..=0x109F        // Myanmar
            | 0x1100..=0x11FF        // Hangul letters
            | 0x1780..=0x17FF        // Khmer
            | 0x3041..=0x309F        // Hiragana
            | 0x30A1..=0x30FA        // Katakana
            | 0x30FC..=0x30FF
            | 0x31F0..=0x31FF
            | 0xAC00..=0xD7FF) // Hangul
}

fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character),
        0x3005..=0x3007
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0x2_0000..=0x3_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let words = Words::of(text);
        words.iter().map(|(_, word)| word.to_owned()).collect()
    }

    #[test]
    fn what_is_looked_for_as_a_whole_is_a_word() {
        for (text, expected) in [
            ("ORD-12345", "ord-12345 ord 12345"),
            ("foo_bar", "foo_bar foo bar"),
            (
                "Mail mira@example.com!",
                "mail mira@example.com mira example com",
            ),
            ("v1.2.3-beta", "v1.2.3-beta v1 2 3 beta"),
            ("2024-05-03", "2024-05-03 2024 5 3"),
            (
                "2024-05-03T10:07:00Z",
                "2024-05-03 2024 5 3 10:07:00z 10 7 00z",
            ),
            ("5/3/2024", "5/3/2024 5 3 2024"),
            ("costs $1,234.50 or 3.14", "costs 1234.50 or 3.14"),
            ("1,2 and 12,345,678", "1,2 1 2 and 12345678"),
            ("AT&T, U.S.A.", "at&t at t usa"),
            ("well-known and/or", "well known and or"),
            ("Don’t", "don't"),
            ("'quoted'", "quoted"),
            ("C-3PO", "c-3po c 3po"),
            ("０１２ ﬁne", "012 fine"),
            ("soft\u{ad}ware", "software"),
            ("", ""),
            ("... -- !", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs() {
        assert_eq!(words("東京都"), ["東", "東京", "京", "京都", "都"]);
        assert_eq!(words("カメラ"), ["カメ", "メラ"]);
        assert_eq!(words("서울에서 나"), ["서울", "울에", "에서", "나"]);
        assert_eq!(words("iPhone15を買う"), ["iphone15", "を買", "買", "買う"]);
        assert_eq!(words("สวัสดี").len(), 5);
    }

    #[test]
    fn a_very_long_word_is_known_by_its_beginning() {
        let long = "é".repeat(WORD_BYTES_MAX);
        let found = Words::of(&long);
        let (kind, word) = found.iter().next().unwrap();
        assert_eq!(
            (kind, word),
            (Kind::Literal, "é".repeat(WORD_BYTES_MAX / 2).as_str())
        );
        assert_eq!(found.iter().count(), 1);
    }
}
