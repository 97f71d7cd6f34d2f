//! Where the panes of a tab are in its area, and the lines between them. Pure geometry.

use abide_wire::session::{SessionId, TerminalSize};

use crate::screen::layout::{Direction, Node, Tab};

/// The smallest pane: room for one wide character and a cursor.
const MIN_COLS: u16 = 4;
const MIN_ROWS: u16 = 1;

/// A part of the tab's area, in cells from its top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub x: u16,
    pub y: u16,
    pub cols: u16,
    pub rows: u16,
}

impl Rect {
    pub fn whole(size: TerminalSize) -> Self {
        Self { x: 0, y: 0, cols: size.cols, rows: size.rows }
    }

    pub fn size(&self) -> TerminalSize {
        TerminalSize { cols: self.cols, rows: self.rows }
    }

    pub fn contains(&self, x: u16, y: u16) -> bool {
        (self.x..self.x + self.cols).contains(&x) && (self.y..self.y + self.rows).contains(&y)
    }

    /// The halves of a split and the line between them; `None` if one of them would be too small to use.
    pub fn halves(&self, direction: Direction) -> Option<(Self, Self, Self)> {
        let (side, least) = match direction {
            Direction::Columns => (self.cols, MIN_COLS),
            Direction::Rows => (self.rows, MIN_ROWS),
        };
        if side < 2 * least + 1 {
            return None;
        }
        let first = side / 2;
        let rest = side - first - 1;
        Some(match direction {
            Direction::Columns => (
                Self { cols: first, ..*self },
                Self { x: self.x + first, cols: 1, ..*self },
                Self { x: self.x + first + 1, cols: rest, ..*self },
            ),
            Direction::Rows => (
                Self { rows: first, ..*self },
                Self { y: self.y + first, rows: 1, ..*self },
                Self { y: self.y + first + 1, rows: rest, ..*self },
            ),
        })
    }
}

/// A session and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedPane {
    pub session: SessionId,
    pub rect: Rect,
}

/// Everything in a tab's area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TabPlacement {
    pub size: TerminalSize,
    pub panes: Vec<PlacedPane>,
    /// The lines between the panes, one cell thick.
    pub lines: Vec<Rect>,
    /// The pane with the focus. It is always among the panes.
    pub focused: SessionId,
}

impl TabPlacement {
    pub fn of(tab: &Tab, size: TerminalSize) -> Self {
        let mut placement = Self { size, panes: Vec::new(), lines: Vec::new(), focused: tab.focused };
        let area = Rect::whole(size);
        if tab.zoomed {
            placement.panes.push(PlacedPane { session: tab.focused, rect: area });
        } else {
            placement.put(&tab.root, area);
        }
        placement
    }

    fn put(&mut self, node: &Node, area: Rect) {
        let (direction, first, second) = match node {
            Node::Pane(session) => return self.panes.push(PlacedPane { session: *session, rect: area }),
            Node::Split { direction, first, second } => (*direction, first, second),
        };
        match area.halves(direction) {
            Some((one, line, other)) => {
                self.put(first, one);
                self.put(second, other);
                self.lines.push(line);
            }
            // No room for both: what has the focus must stay visible, the other part waits for a larger terminal.
            None => self.put(if second.contains(&self.focused) { second } else { first }, area),
        }
    }

    pub fn focused_pane(&self) -> Option<&PlacedPane> {
        self.panes.iter().find(|pane| pane.session == self.focused)
    }

    /// The pane at a point.
    pub fn pane_at(&self, x: u16, y: u16) -> Option<&PlacedPane> {
        self.panes.iter().find(|pane| pane.rect.contains(x, y))
    }

    /// The pane that one comes to when leaving the focused one towards (`dx`, `dy`), one of which is 0.
    pub fn towards(&self, dx: i32, dy: i32) -> Option<&SessionId> {
        let from = &self.focused_pane()?.rect;
        // Neighbours share exactly one line.
        let beyond = |rect: &Rect| match (dx, dy) {
            (1, _) => rect.x == from.x + from.cols + 1,
            (-1, _) => rect.x + rect.cols + 1 == from.x,
            (_, 1) => rect.y == from.y + from.rows + 1,
            _ => rect.y + rect.rows + 1 == from.y,
        };
        let shared = |rect: &Rect| {
            let (low, high) = if dx == 0 {
                (rect.x.max(from.x), (rect.x + rect.cols).min(from.x + from.cols))
            } else {
                (rect.y.max(from.y), (rect.y + rect.rows).min(from.y + from.rows))
            };
            high.saturating_sub(low)
        };
        let neighbours = self.panes.iter().filter(|pane| beyond(&pane.rect) && shared(&pane.rect) > 0);
        neighbours.max_by_key(|pane| shared(&pane.rect)).map(|pane| &pane.session)
    }

    /// The line character at a point between the panes, and whether it borders the focused pane.
    pub fn line_at(&self, x: u16, y: u16) -> Option<(char, bool)> {
        let on_line = |x: Option<u16>, y: Option<u16>| matches!((x, y), (Some(x), Some(y)) if self.lines.iter().any(|line| line.contains(x, y)));
        if !on_line(Some(x), Some(y)) {
            return None;
        }
        let up = on_line(Some(x), y.checked_sub(1));
        let down = on_line(Some(x), y.checked_add(1));
        let left = on_line(x.checked_sub(1), Some(y));
        let right = on_line(x.checked_add(1), Some(y));
        let ch = match (up, down, left, right) {
            (true, true, true, true) => '┼',
            (true, true, true, false) => '┤',
            (true, true, false, true) => '├',
            (true, false, true, true) => '┴',
            (false, true, true, true) => '┬',
            (_, _, false, false) => '│',
            _ => '─',
        };
        let touches = self.focused_pane().is_some_and(|pane| {
            let Rect { x: left, y: top, cols, rows } = pane.rect;
            (left.saturating_sub(1)..=left + cols).contains(&x)
                && (top.saturating_sub(1)..=top + rows).contains(&y)
        });
        Some((ch, touches && self.is_on_focused_half(x, y)))
    }

    /// Of the one line between two panes, the half that shows which of them has the focus: the upper or left half is that
    /// of the first pane.
    fn is_on_focused_half(&self, x: u16, y: u16) -> bool {
        let ([first, second], Some(focused)) = (self.panes.as_slice(), self.focused_pane()) else {
            return true;
        };
        let is_first = focused.session == first.session;
        let side_by_side = first.rect.y == second.rect.y;
        let (at, whole) = if side_by_side { (y, self.size.rows) } else { (x, self.size.cols) };
        (at < whole / 2) == is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::layout::Layout;
    use proptest::prelude::*;

    fn tab(splits: &[(u8, bool)]) -> Tab {
        let mut layout = Layout::default();
        layout.add(&SessionId(0));
        for (n, (at, columns)) in (1..).zip(splits) {
            let at = SessionId(u32::from(*at) % n);
            let direction = if *columns { Direction::Columns } else { Direction::Rows };
            layout.split(&at, direction, &SessionId(n));
        }
        layout.tabs()[0].clone()
    }

    proptest! {
        #[test]
        fn panes_and_lines_cover_the_area_exactly_once(
            splits in prop::collection::vec((any::<u8>(), any::<bool>()), 0..8), cols in 1u16..120, rows in 1u16..50,
        ) {
            let tab = tab(&splits);
            let placement = TabPlacement::of(&tab, TerminalSize { cols, rows });
            prop_assert!(placement.focused_pane().is_some());
            for (x, y) in (0..cols).flat_map(|x| (0..rows).map(move |y| (x, y))) {
                let panes = placement.panes.iter().filter(|pane| pane.rect.contains(x, y)).count();
                let lines = placement.lines.iter().filter(|line| line.contains(x, y)).count();
                prop_assert_eq!(panes + lines, 1, "at {},{}", x, y);
            }
        }
    }

    #[test]
    fn the_focus_moves_to_the_pane_that_is_there() {
        // s0 on the left; s1 above s2 on the right.
        let mut tab = tab(&[(0, true), (1, false)]);
        let at = |tab: &Tab, dx, dy| {
            TabPlacement::of(tab, TerminalSize { cols: 80, rows: 24 }).towards(dx, dy).cloned()
        };
        assert_eq!(tab.focused, SessionId(2));
        assert_eq!(at(&tab, 0, -1), Some(SessionId(1)));
        assert_eq!(at(&tab, -1, 0), Some(SessionId(0)));
        assert_eq!(at(&tab, 1, 0), None);
        assert_eq!(at(&tab, 0, 1), None);
        tab.focused = SessionId(0);
        assert!(at(&tab, 1, 0).is_some());
    }

    #[test]
    fn lines_meet_in_the_right_characters() {
        let tab = tab(&[(0, true), (1, false)]);
        let placement = TabPlacement::of(&tab, TerminalSize { cols: 21, rows: 11 });
        assert_eq!(placement.line_at(10, 0), Some(('│', false)));
        assert_eq!(placement.line_at(10, 5), Some(('├', true)));
        assert_eq!(placement.line_at(15, 5), Some(('─', true)));
        assert_eq!(placement.line_at(0, 0), None);
    }

    #[test]
    fn the_line_between_two_panes_tells_which_one_has_the_focus() {
        let placement = TabPlacement::of(&tab(&[(0, true)]), TerminalSize { cols: 80, rows: 24 });
        let x = placement.panes[0].rect.cols.min(placement.panes[1].rect.x.saturating_sub(1));
        let is_first = placement.focused_pane().map(|pane| pane.session) == Some(placement.panes[0].session);
        assert_eq!(placement.line_at(x, 0), Some(('│', is_first)));
        assert_eq!(placement.line_at(x, 23), Some(('│', !is_first)));
    }

    #[test]
    fn a_zoomed_pane_has_everything() {
        let mut tab = tab(&[(0, true)]);
        tab.zoomed = true;
        let placement = TabPlacement::of(&tab, TerminalSize { cols: 80, rows: 24 });
        assert_eq!(placement.panes.len(), 1);
        assert_eq!(placement.panes[0].rect, Rect::whole(TerminalSize { cols: 80, rows: 24 }));
    }
}
