//! What the environment says about the operator's terminal.

use abide_model::{TrueColor, vars};
use abide_wire::protocol::TerminalTrait;

use crate::probe::TerminalReport;

/// The variables that describe a terminal, as the client found them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TerminalEnv {
    term: String,
    colorterm: String,
    locale: String,
    no_color: bool,
    inside_tmux: bool,
}

/// What a kind of terminal is known to lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminalKind {
    /// One that knows what xterm and most others know.
    Usual,
    /// GNU screen, and what is not known by name: neither is relied on for more than colours and titles.
    Modest,
    /// The console of Linux or of a BSD: eight colours.
    Console,
    /// A terminal of glass: no colours, and no UTF-8.
    Glass,
}

impl TerminalEnv {
    pub fn here() -> Self {
        let var = |name: &str| std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned();
        let is_set = |name: &str| !var(name).is_empty();
        let locales = [vars::LC_ALL, vars::LC_CTYPE, vars::LANG].map(var);
        Self {
            term: var(vars::TERM),
            colorterm: var(vars::COLORTERM),
            locale: locales.into_iter().find(|value| !value.is_empty()).unwrap_or_default(),
            no_color: is_set(vars::NO_COLOR),
            inside_tmux: is_set(vars::TMUX),
        }
    }

    /// Whether it is safe to ask the terminal about itself in ways that not all of them know.
    pub fn takes_questions(&self) -> bool {
        matches!(self.kind(), TerminalKind::Usual | TerminalKind::Modest)
    }

    /// Whether it knows links and synchronized output.
    pub fn has_extensions(&self) -> bool {
        self.kind() == TerminalKind::Usual
    }

    /// In what the terminal differs from the usual one, by the environment, its own answers and the operator's setting.
    pub fn traits(&self, reported: TerminalReport, truecolor: TrueColor) -> Vec<TerminalTrait> {
        let kind = self.kind();
        let facts = [
            (reported.modify_other_keys, TerminalTrait::ModifyOtherKeys),
            (reported.kitty, TerminalTrait::KittyKeyboard),
            (self.no_color, TerminalTrait::NoColor),
            (kind == TerminalKind::Glass || !self.is_utf8(), TerminalTrait::NotUtf8),
            // One that answers about that keyboard protocol has all of these.
            (kind != TerminalKind::Usual && !reported.kitty, TerminalTrait::NoExtensions),
            (!self.takes_questions(), TerminalTrait::NoStrings),
        ];
        let known = facts.into_iter().filter(|(holds, _)| *holds).map(|(_, one)| one);
        known.chain(self.colors(reported, truecolor)).collect()
    }

    /// How many colours it has, where that is not 256.
    fn colors(&self, reported: TerminalReport, truecolor: TrueColor) -> Option<TerminalTrait> {
        let direct = match truecolor {
            TrueColor::On => true,
            TrueColor::Off => false,
            // Every terminal with that keyboard protocol has direct colours, and over ssh it is often the only thing to go by.
            TrueColor::Auto => reported.kitty || self.says_direct_colors(),
        };
        if direct {
            return Some(TerminalTrait::DirectColors);
        }
        match self.kind() {
            _ if self.term.contains("256color") || reported.kitty => None,
            _ if self.term.contains("16color") || self.term.contains("88color") => {
                Some(TerminalTrait::SixteenColors)
            }
            TerminalKind::Usual => None,
            TerminalKind::Modest | TerminalKind::Console => Some(TerminalTrait::EightColors),
            TerminalKind::Glass => Some(TerminalTrait::Monochrome),
        }
    }

    fn says_direct_colors(&self) -> bool {
        const DIRECT: [&str; 7] = ["kitty", "ghostty", "alacritty", "wezterm", "foot", "contour", "direct"];
        let by_name = DIRECT.iter().any(|name| self.term.contains(name));
        // Programs inherit the variable from the terminal outside; a terminal inside it may have fewer.
        let by_variable = matches!(self.colorterm.as_str(), "truecolor" | "24bit");
        by_name || (by_variable && self.kind() == TerminalKind::Usual)
    }

    fn kind(&self) -> TerminalKind {
        const GLASS: [&str; 4] = ["vt1", "vt2", "vt3", "vt5"];
        const CONSOLES: [&str; 6] = ["linux", "cons25", "ansi", "pcansi", "wsvt", "sun"];
        const USUAL: [&str; 22] = [
            "xterm", "tmux", "rxvt", "kitty", "ghostty", "alacritty", "wezterm", "foot", "contour", "st",
            "vte", "gnome", "konsole", "putty", "mlterm", "mintty", "iterm", "rio", "eterm", "terminator",
            "termite", "nsterm",
        ];
        let term = self.term.to_lowercase();
        // `st-256color` and `xterm.js` are such names, `stv52` is another.
        let is_one = |names: &[&str]| {
            names.iter().any(|name| {
                let rest = term.strip_prefix(name);
                rest.is_some_and(|rest| !rest.starts_with(|ch: char| ch.is_ascii_alphabetic()))
            })
        };
        let starts = |names: &[&str]| names.iter().any(|name| term.starts_with(name));
        if term.starts_with("screen") {
            // tmux called itself so for long.
            if self.inside_tmux { TerminalKind::Usual } else { TerminalKind::Modest }
        } else if starts(&GLASS) {
            TerminalKind::Glass
        } else if starts(&CONSOLES) {
            TerminalKind::Console
        } else if is_one(&USUAL) || term.ends_with("256color") || term.contains("direct") {
            TerminalKind::Usual
        } else {
            TerminalKind::Modest
        }
    }

    /// Whether text is UTF-8, which it is unless the locale says otherwise.
    fn is_utf8(&self) -> bool {
        let locale = self.locale.to_lowercase();
        locale.is_empty() || locale.contains("utf-8") || locale.contains("utf8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TerminalTrait::{
        DirectColors, EightColors, KittyKeyboard, Monochrome, NoColor, NoExtensions, NoStrings, NotUtf8,
        SixteenColors,
    };

    fn of(term: &str) -> TerminalEnv {
        TerminalEnv { term: term.to_owned(), locale: "C.UTF-8".to_owned(), ..TerminalEnv::default() }
    }

    fn traits(env: &TerminalEnv) -> Vec<TerminalTrait> {
        env.traits(TerminalReport::default(), TrueColor::Auto)
    }

    #[test]
    fn a_kind_of_terminal_gets_what_it_has() {
        let table: [(&str, &[TerminalTrait]); 12] = [
            ("xterm-256color", &[]),
            ("xterm", &[]),
            ("st-256color", &[]),
            ("tmux-256color", &[]),
            ("foot", &[DirectColors]),
            ("xterm-direct", &[DirectColors]),
            ("rxvt-16color", &[SixteenColors]),
            ("screen", &[NoExtensions, EightColors]),
            ("screen-256color", &[NoExtensions]),
            ("no-such-term", &[NoExtensions, EightColors]),
            ("linux", &[NoExtensions, NoStrings, EightColors]),
            ("vt220", &[NotUtf8, NoExtensions, NoStrings, Monochrome]),
        ];
        for (term, expected) in table {
            assert_eq!(traits(&of(term)), expected, "{term}");
        }
        assert_eq!(traits(&TerminalEnv { inside_tmux: true, ..of("screen") }), []);
    }

    #[test]
    fn text_is_utf_8_unless_the_locale_says_otherwise() {
        for locale in ["", "C.UTF-8", "de_DE.utf8", "UTF-8", "en_US.UTF-8@euro"] {
            assert_eq!(traits(&TerminalEnv { locale: locale.to_owned(), ..of("xterm") }), [], "{locale}");
        }
        for locale in ["C", "POSIX", "de_DE.ISO-8859-1", "en_US"] {
            assert_eq!(
                traits(&TerminalEnv { locale: locale.to_owned(), ..of("xterm") }),
                [NotUtf8],
                "{locale}"
            );
        }
    }

    #[test]
    fn direct_colours_are_used_where_something_speaks_for_them_or_the_setting_decides() {
        let says = |term: &str| TerminalEnv { colorterm: "truecolor".to_owned(), ..of(term) };
        let mut kitty = TerminalReport::default();
        kitty.kitty = true;
        assert_eq!(traits(&says("xterm-256color")), [DirectColors]);
        assert_eq!(traits(&says("linux")), [NoExtensions, NoStrings, EightColors]);
        assert_eq!(of("xterm").traits(kitty, TrueColor::Auto), [KittyKeyboard, DirectColors]);
        assert_eq!(of("xterm").traits(TerminalReport::default(), TrueColor::On), [DirectColors]);
        assert_eq!(says("xterm").traits(kitty, TrueColor::Off), [KittyKeyboard]);
    }

    #[test]
    fn an_operator_who_wants_no_colours_gets_none() {
        assert_eq!(traits(&TerminalEnv { no_color: true, ..of("xterm") }), [NoColor]);
    }
}
