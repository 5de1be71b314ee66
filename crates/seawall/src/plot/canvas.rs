//! Shapes and texts as SVG. Numbers have one decimal: a tenth of a pixel is not seen.

use std::fmt::Write as _;

/// An SVG that is being written.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    body: String,
}

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A place, in pixels from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

pub(crate) const fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

impl Canvas {
    fn push(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// A filled rectangle of a class of the style sheet.
    pub(crate) fn rectangle(&mut self, class: &str, corner: Point, width: f64, height: f64) {
        let (x, y, width, height) = (short(corner.x), short(corner.y), short(width), short(height));
        self.push(&format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"));
    }

    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, from: Point, to: Point) {
        let path = format!("M{} {}L{} {}", short(from.x), short(from.y), short(to.x), short(to.y));
        self.push(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// A line through points; nothing for fewer than two.
    pub(crate) fn curve(&mut self, class: &str, points: &[Point]) {
        if points.len() > 1 {
            let path = path(points);
            self.push(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }

    /// The area between two lines with the same places on the time axis; nothing for fewer than two points.
    pub(crate) fn area(&mut self, class: &str, above: &[Point], below: &[Point]) {
        if above.len() > 1 && below.len() > 1 {
            let back: Vec<Point> = below.iter().rev().copied().collect();
            let path = format!("{}{}Z", path(above), path(&back).replacen('M', "L", 1));
            self.push(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }

    /// A text whose base line is at a place.
    pub(crate) fn text(&mut self, class: &str, place: Point, anchor: Anchor, text: &str) {
        let (x, y) = (short(place.x), short(place.y));
        let anchor =
            if anchor == Anchor::Start { String::new() } else { format!(" text-anchor=\"{}\"", anchor.name()) };
        self.push(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{}</text>", escaped(text)));
    }

    /// The whole file. `title` and `description` are for those who cannot see it.
    pub(crate) fn finish(self, width: f64, height: f64, style: &str, [title, description]: [&str; 2]) -> String {
        let (width, height) = (short(width), short(height));
        let (title, description) = (escaped(title), escaped(description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title description\">\n\
             <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n\
             <style>{style}</style>\n{}</svg>\n",
            self.body
        )
    }
}

fn path(points: &[Point]) -> String {
    let mut path = String::new();
    for (index, point) in points.iter().enumerate() {
        // What lies on a level stretch is not written: most series are level for long.
        let level = |other: Option<&Point>| other.is_some_and(|other| short(other.y) == short(point.y));
        if index > 0 && level(points.get(index - 1)) && level(points.get(index + 1)) {
            continue;
        }
        let command = if index == 0 { 'M' } else { 'L' };
        write!(path, "{command}{} {}", short(point.x), short(point.y)).expect("a string takes any text");
    }
    path
}

/// A number with at most one decimal.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A text in which nothing can be taken for markup. Control characters, which XML does not know, become spaces.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_be_markup() {
        assert_eq!(escaped("a & b <c> \"d\" 'e'\u{7}"), "a &amp; b &lt;c&gt; &quot;d&quot; &#39;e&#39; ");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([12.0, 0.04, -0.04, 1.25, -3.0].map(short), ["12", "0", "0", "1.2", "-3"]);
    }

    #[test]
    fn level_stretches_are_not_written_out() {
        let points: Vec<Point> =
            [1.0, 1.0, 1.0, 2.0, 2.0].iter().zip([0.0, 1.0, 2.0, 3.0, 4.0]).map(|(y, x)| at(x, *y)).collect();
        assert_eq!(path(&points), "M0 1L2 1L3 2L4 2");
        let mut canvas = Canvas::default();
        canvas.curve("a", &points[..1]);
        assert_eq!(canvas.body, "");
    }
}
