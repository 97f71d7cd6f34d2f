//! Tabs and splits: which sessions are together, and which of them has the focus. Where that puts them on a screen
//! is [`place`](crate::screen::placement)'s business.

use abide_wire::session::{SessionId, TerminalSize};
use serde::{Deserialize, Serialize};

/// A tab, for as long as the instance lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct TabId(u32);

/// How the two halves of a split lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    /// Side by side.
    Columns,
    /// One above the other.
    Rows,
}

/// A session, or two parts of a tab that share its area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Node {
    Pane(SessionId),
    Split { direction: Direction, first: Box<Node>, second: Box<Node> },
}

impl Node {
    /// The sessions below, in reading order.
    pub fn sessions(&self) -> Vec<&SessionId> {
        match self {
            Self::Pane(session) => vec![session],
            Self::Split { first, second, .. } => {
                let mut sessions = first.sessions();
                sessions.extend(second.sessions());
                sessions
            }
        }
    }

    pub fn contains(&self, wanted: &SessionId) -> bool {
        match self {
            Self::Pane(session) => session == wanted,
            Self::Split { first, second, .. } => first.contains(wanted) || second.contains(wanted),
        }
    }

    fn split(&mut self, at: &SessionId, direction: Direction, new: &SessionId) {
        match self {
            Self::Pane(session) if session == at => {
                let (first, second) = (Self::Pane(*at), Self::Pane(*new));
                *self = Self::Split { direction, first: Box::new(first), second: Box::new(second) };
            }
            Self::Pane(_) => {}
            Self::Split { first, second, .. } => {
                first.split(at, direction, new);
                second.split(at, direction, new);
            }
        }
    }

    /// What is left without the sessions that `keep` refuses.
    fn retain(self, keep: &impl Fn(&SessionId) -> bool) -> Option<Self> {
        match self {
            Self::Pane(session) => keep(&session).then_some(Self::Pane(session)),
            Self::Split { direction, first, second } => match (first.retain(keep), second.retain(keep)) {
                (Some(first), Some(second)) => {
                    Some(Self::Split { direction, first: Box::new(first), second: Box::new(second) })
                }
                (one, other) => one.or(other),
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tab {
    pub id: TabId,
    pub root: Node,
    pub focused: SessionId,
    /// The focused session fills the tab.
    #[serde(default)]
    pub zoomed: bool,
    /// Its area, once a client has shown it.
    #[serde(default)]
    pub size: Option<TerminalSize>,
}

impl Tab {
    /// Gives the focus to the session after the focused one.
    pub fn focus_next(&mut self) {
        let sessions = self.root.sessions();
        let at = sessions.iter().position(|session| **session == self.focused).map_or(0, |at| at + 1);
        if let Some(next) = sessions.get(at % sessions.len().max(1)) {
            self.focused = *(*next);
        }
    }
}

/// All tabs, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Layout {
    #[serde(default)]
    tabs: Vec<Tab>,
    /// The tab that was looked at last, which new clients see first.
    #[serde(default)]
    current: TabId,
    #[serde(default)]
    last_id: u32,
}

impl Layout {
    pub fn tabs(&self) -> &[Tab] {
        &self.tabs
    }

    /// The tab that was looked at last.
    pub fn current(&self) -> Option<&Tab> {
        self.tab(self.current).or(self.tabs.first())
    }

    pub fn tab(&self, id: TabId) -> Option<&Tab> {
        self.tabs.iter().find(|tab| tab.id == id)
    }

    pub fn tab_mut(&mut self, id: TabId) -> Option<&mut Tab> {
        self.tabs.iter_mut().find(|tab| tab.id == id)
    }

    pub fn tab_of(&self, session: &SessionId) -> Option<&Tab> {
        self.tabs.iter().find(|tab| tab.root.contains(session))
    }

    /// The tab with this number, as the operator counts.
    pub fn nth(&self, number: usize) -> Option<TabId> {
        self.tabs.get(number).map(|tab| tab.id)
    }

    /// The tab `by` places after `from`, around the end.
    pub fn neighbour(&self, from: TabId, by: isize) -> Option<TabId> {
        let count = isize::try_from(self.tabs.len()).ok().filter(|count| *count > 0)?;
        let at = self.tabs.iter().position(|tab| tab.id == from).unwrap_or(0);
        let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(count);
        self.nth(next.unsigned_abs())
    }

    /// Remembers which tab was looked at last.
    pub fn look_at(&mut self, tab: TabId) {
        self.current = tab;
    }

    /// Every session, in tab order.
    pub fn sessions(&self) -> Vec<&SessionId> {
        self.tabs.iter().flat_map(|tab| tab.root.sessions()).collect()
    }

    /// Puts a session into a tab of its own, unless it has a place.
    pub fn add(&mut self, session: &SessionId) -> TabId {
        if let Some(tab) = self.tab_of(session) {
            return tab.id;
        }
        self.last_id += 1;
        let id = TabId(self.last_id);
        let root = Node::Pane(*session);
        self.tabs.push(Tab { id, root, focused: *session, zoomed: false, size: None });
        id
    }

    /// Puts a session where it was in `earlier`, if everything that is here now was there too; else into a tab of its own.
    pub fn add_as_in(&mut self, earlier: &Self, session: &SessionId) -> TabId {
        let here: Vec<SessionId> = self.sessions().into_iter().cloned().collect();
        let there = earlier.sessions();
        if !here.contains(session) && there.contains(&session) && here.iter().all(|id| there.contains(&id)) {
            let mut as_before = earlier.clone();
            as_before.retain(|id| id == session || here.contains(id));
            as_before.last_id = as_before.last_id.max(self.last_id);
            *self = as_before;
        }
        self.add(session)
    }

    /// Puts a new session beside `at` and gives it the focus.
    pub fn split(&mut self, at: &SessionId, direction: Direction, new: &SessionId) -> TabId {
        let Some(tab) = self.tabs.iter_mut().find(|tab| tab.root.contains(at)) else { return self.add(new) };
        tab.root.split(at, direction, new);
        tab.focused = *new;
        tab.zoomed = false;
        tab.id
    }

    /// Gives a session the focus of its tab.
    pub fn focus(&mut self, session: &SessionId) -> Option<TabId> {
        let tab = self.tabs.iter_mut().find(|tab| tab.root.contains(session))?;
        tab.zoomed &= tab.focused == *session;
        tab.focused = *session;
        Some(tab.id)
    }

    /// Removes the sessions that `keep` refuses, and the tabs that are empty without them.
    pub fn retain(&mut self, keep: impl Fn(&SessionId) -> bool) {
        let position = self.tabs.iter().position(|tab| tab.id == self.current).unwrap_or(0);
        let tabs = std::mem::take(&mut self.tabs);
        self.tabs = tabs.into_iter().filter_map(|tab| without(tab, &keep)).collect();
        if self.tab(self.current).is_none() {
            let nearest = self.tabs.get(position).or(self.tabs.last());
            self.current = nearest.map(|tab| tab.id).unwrap_or_default();
        }
    }
}

fn without(mut tab: Tab, keep: &impl Fn(&SessionId) -> bool) -> Option<Tab> {
    let before: Vec<SessionId> = tab.root.sessions().into_iter().cloned().collect();
    tab.root = tab.root.retain(keep)?;
    if !tab.root.contains(&tab.focused) {
        // The focus goes to the nearest neighbour that is left, the one before first.
        let at = before.iter().position(|session| *session == tab.focused).unwrap_or(0);
        let (earlier, later) = before.split_at(at);
        let left = |session: &&SessionId| tab.root.contains(session);
        tab.focused = *earlier.iter().rev().find(left).or_else(|| later.iter().find(left))?;
        tab.zoomed = false;
    }
    Some(tab)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_come_back_one_by_one_find_their_old_places() {
        let mut earlier = Layout::default();
        earlier.add(&SessionId(1));
        earlier.split(&SessionId(1), Direction::Columns, &SessionId(2));
        earlier.add(&SessionId(3));
        let mut now = Layout::default();
        for back in [1, 3, 2] {
            now.add_as_in(&earlier, &SessionId(back));
        }
        assert_eq!(now.tabs().len(), 2);
        assert_eq!(now.sessions(), earlier.sessions());
        now.add_as_in(&earlier, &SessionId(9));
        assert_eq!(now.tabs().len(), 3, "one that was not there has a tab of its own");
        let mut other = Layout::default();
        other.add(&SessionId(4));
        other.add_as_in(&earlier, &SessionId(2));
        assert_eq!(other.tabs().len(), 2, "what is here is never lost");
    }

    fn three_panes() -> Layout {
        let mut layout = Layout::default();
        layout.add(&SessionId(1));
        layout.split(&SessionId(1), Direction::Columns, &SessionId(2));
        layout.split(&SessionId(2), Direction::Rows, &SessionId(3));
        layout
    }

    #[test]
    fn a_closed_pane_leaves_its_room_and_its_focus_to_a_neighbour() {
        let mut layout = three_panes();
        layout.retain(|session| *session != SessionId(3));
        let tab = &layout.tabs()[0];
        assert_eq!(tab.root.sessions(), [&SessionId(1), &SessionId(2)]);
        assert_eq!(tab.focused, SessionId(2));
        layout.retain(|session| *session != SessionId(1));
        assert_eq!(layout.tabs()[0].root, Node::Pane(SessionId(2)));
        layout.retain(|_| false);
        assert!(layout.tabs().is_empty() && layout.current().is_none());
    }

    #[test]
    fn closing_the_current_tab_shows_its_neighbour() {
        let mut layout = Layout::default();
        let ids = [1, 2, 3].map(|id| layout.add(&SessionId(id)));
        layout.look_at(ids[1]);
        layout.retain(|session| *session != SessionId(2));
        assert_eq!(layout.current().map(|tab| tab.id), Some(ids[2]));
        layout.retain(|session| *session != SessionId(3));
        assert_eq!(layout.current().map(|tab| tab.id), Some(ids[0]));
    }

    #[test]
    fn tabs_go_round_in_both_directions() {
        let mut layout = Layout::default();
        let ids = [1, 2, 3].map(|id| layout.add(&SessionId(id)));
        assert_eq!(layout.neighbour(ids[2], 1), Some(ids[0]));
        assert_eq!(layout.neighbour(ids[0], -1), Some(ids[2]));
    }

    #[test]
    fn focusing_another_pane_ends_a_zoom_that_hides_it() {
        let mut layout = three_panes();
        let tab = layout.tabs()[0].id;
        layout.tab_mut(tab).unwrap().zoomed = true;
        layout.focus(&SessionId(3));
        assert!(layout.tabs()[0].zoomed);
        layout.focus(&SessionId(1));
        assert!(!layout.tabs()[0].zoomed);
    }

    #[test]
    fn a_layout_survives_its_file() {
        let layout = three_panes();
        let json = serde_json::to_string(&layout).unwrap();
        assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), layout);
    }
}
