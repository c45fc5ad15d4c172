//! Does a schema still keep what its earlier state promised to those who read?
//!
//! Within a version may come fields, and values of a field that names one of several (`docs/json.md`). All else that is written
//! must be as the earlier state says. That a field keeps its unit and its meaning can't be seen here.

use std::collections::HashSet;
use std::fmt;
use std::ptr::from_ref;

use serde_json::{Map, Value};

use crate::shape::{List, Number, Object, Shape, followed, shapes};

/// What breaks those who read as the earlier schema says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// Where in the object: `comparisons[].samples[].rate`; empty for the whole.
    pub place: String,
    /// What became of it.
    pub what: String,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() {
            "the object"
        } else {
            &self.place
        };
        write!(f, "{place} {}", self.what)
    }
}

/// Everything in `now` that breaks those who read as `before` says; of an object that stands in several places it is told once.
pub fn breaks(before: &Value, now: &Value) -> Vec<Break> {
    let mut comparison = Comparison {
        before,
        now,
        values: HashSet::new(),
        objects: HashSet::new(),
        breaks: Vec::new(),
    };
    comparison.roots();
    comparison.breaks
}

/// Of before and now, by where they are.
type Pairs<T> = HashSet<(*const T, *const T)>;

struct Comparison<'a> {
    before: &'a Value,
    now: &'a Value,
    /// What was compared already.
    values: Pairs<Value>,
    objects: Pairs<Map<String, Value>>,
    breaks: Vec<Break>,
}

impl<'a> Comparison<'a> {
    /// Answers have two schemas: which of them holds is said by an `if`.
    fn roots(&mut self) {
        let (before, now) = (self.before, self.now);
        if before.get("if") != now.get("if") {
            self.say("", "is another when a command fails");
        } else if before.get("if").is_some() {
            for keyword in ["then", "else"] {
                match (before.get(keyword), now.get(keyword)) {
                    (Some(before), Some(now)) => self.values("", before, now),
                    (None, _) => {}
                    (Some(_), None) => self.say("", "may be anything"),
                }
            }
        } else {
            self.values("", before, now);
        }
    }

    fn values(&mut self, place: &str, before: &'a Value, now: &'a Value) {
        let (before, now) = (followed(self.before, before), followed(self.now, now));
        if !self.values.insert((from_ref(before), from_ref(now))) {
            return;
        }
        let before = shapes(self.before, before);
        let now = shapes(self.now, now);
        let (before, now) = match (before, now) {
            (Ok(before), Ok(now)) => (before, now),
            (Err(what), _) | (_, Err(what)) => {
                let what = format!("is described in a way that is not compared yet: {what}");
                return self.say(place, what);
            }
        };
        if before.contains(&Shape::Anything) {
            return;
        }
        for shape in &now {
            match shape {
                Shape::Object(_) => {}
                Shape::List(list) => self.list(place, &before, list),
                simple => {
                    if let Some(what) = new_to_a_reader(&before, simple) {
                        self.say(place, format!("may be {what}, which it never was"));
                    }
                }
            }
        }
        for shape in &before {
            if let Shape::Exactly(value) = shape
                && !now.iter().any(|now| takes(now, value))
            {
                self.say(place, format!("is never {value} any more"));
            }
        }
        self.objects(place, &objects_of(&before), &objects_of(&now));
    }

    fn list(&mut self, place: &str, before: &[Shape<'a>], now: &List<'a>) {
        let list = before.iter().find_map(|shape| match shape {
            Shape::List(list) => Some(list),
            _ => None,
        });
        let Some(before) = list else {
            return self.say(place, "may be a list, which it never was");
        };
        if now.shortest < before.shortest {
            self.say(place, "may be shorter than it ever was");
        }
        if now.longest > before.longest {
            self.say(place, "may be longer than it ever was");
        }
        let with_own = before.first.len().max(now.first.len());
        for index in 0..with_own.min(now.longest) {
            let place = format!("{place}[{index}]");
            self.parts(&place, before.entry(index), now.entry(index));
        }
        if now.longest > with_own {
            self.parts(&format!("{place}[]"), before.others, now.others);
        }
    }

    /// Entries of a list, or values by any name; `None` = they may be anything.
    fn parts(&mut self, place: &str, before: Option<&'a Value>, now: Option<&'a Value>) {
        match (before, now) {
            (None, _) => {}
            (Some(before), Some(now)) => self.values(place, before, now),
            (Some(_), None) => self.say(place, "may be anything"),
        }
    }

    /// Each object that may come must be one that could come before, or a further one of those that a field tells apart.
    fn objects(&mut self, place: &str, before: &[Object<'a>], now: &[Object<'a>]) {
        let mut met = HashSet::new();
        let alone = before.len() == 1 && now.len() == 1;
        for object in now {
            let earlier = (0..before.len())
                .filter(|index| alone || is_still(before, *index, *object))
                .max_by_key(|index| before[*index].demanded().count());
            match earlier {
                Some(index) => {
                    met.insert(index);
                    self.fields(place, before[index], *object);
                }
                None if is_one_more(before, *object) => {}
                None => {
                    let told = told(*object);
                    self.say(place, format!("may be {told}, which it never was"));
                }
            }
        }
        for (index, object) in before.iter().enumerate() {
            if !met.contains(&index) {
                self.say(place, format!("is never {} any more", told(*object)));
            }
        }
    }

    fn fields(&mut self, place: &str, before: Object<'a>, now: Object<'a>) {
        if !self.objects.insert((from_ref(before.0), from_ref(now.0))) {
            return;
        }
        let of = |name: &str| match place {
            "" => name.to_owned(),
            place => format!("{place}.{name}"),
        };
        for (name, schema) in before.fields() {
            match now.field(name) {
                Some(now) => self.values(&of(name), schema, now),
                None => self.say(&of(name), "went away"),
            }
        }
        let demanded: HashSet<&str> = now.demanded().collect();
        for name in before.demanded() {
            if !demanded.contains(name) && now.field(name).is_some() {
                self.say(&of(name), "may be absent");
            }
        }
        let Some(others) = before.others() else {
            return;
        };
        for (name, schema) in now.fields() {
            if before.field(name).is_none() {
                self.values(&of(name), others, schema);
            }
        }
        self.parts(&of("*"), Some(others), now.others());
    }

    fn say(&mut self, place: &str, what: impl Into<String>) {
        let told = Break {
            place: place.to_owned(),
            what: what.into(),
        };
        if !self.breaks.contains(&told) {
            self.breaks.push(told);
        }
    }
}

fn objects_of<'a>(shapes: &[Shape<'a>]) -> Vec<Object<'a>> {
    let object = |shape: &Shape<'a>| match shape {
        Shape::Object(object) => Some(*object),
        _ => None,
    };
    shapes.iter().filter_map(object).collect()
}

/// Is it what the earlier one at `index` has become? One that is told by the value of a field keeps it; of others that stand side by
/// side each keeps the fields that are always there.
fn is_still(before: &[Object<'_>], index: usize, now: Object<'_>) -> bool {
    let earlier = before[index];
    let (were, are) = (earlier.tags(), now.tags());
    if !were.is_empty() {
        return were.iter().all(|tag| are.contains(tag));
    }
    let mut demanded = earlier.demanded();
    before.len() == 1 || demanded.all(|name| now.demanded().any(|one| one == name))
}

/// Is it a further one of those that one and the same field tells apart?
fn is_one_more(before: &[Object<'_>], now: Object<'_>) -> bool {
    let differs = |object: &Object<'_>, field: &str, value: &Value| {
        let tags = object.tags();
        let mut tags = tags.iter();
        tags.any(|(name, earlier)| *name == field && *earlier != value)
    };
    let tells_apart = |(field, value): &(&str, &Value)| {
        let mut each = before.iter();
        !before.is_empty() && each.all(|object| differs(object, field, value))
    };
    now.tags().iter().any(tells_apart)
}

/// Which object is meant, where there are several.
fn told(object: Object<'_>) -> String {
    let tags = object.tags();
    let tags: Vec<String> = tags
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if !tags.is_empty() {
        return format!("an object with {}", tags.join(", "));
    }
    let names: Vec<&str> = object.demanded().collect();
    match names.as_slice() {
        [] => "an object".to_owned(),
        names => format!("an object of {}", names.join(", ")),
    }
}

/// Can this value still come?
fn takes(now: &Shape<'_>, value: &Value) -> bool {
    match now {
        Shape::Anything => true,
        Shape::Exactly(one) => *one == value,
        Shape::Text { format: None } => value.is_string(),
        _ => false,
    }
}

/// What a reader has not met yet, in words; `None` where he has, or was told to expect it.
fn new_to_a_reader(before: &[Shape<'_>], now: &Shape<'_>) -> Option<String> {
    let met = |shape: &Shape<'_>| match (shape, now) {
        (Shape::Number(before), Shape::Number(now)) => is_within(before, now),
        (Shape::Number(before), Shape::Exactly(Value::Number(value))) => {
            let value = value.as_f64().unwrap_or(f64::NAN);
            let now = Number {
                whole: value.fract() == 0.0,
                least: value,
                most: value,
            };
            is_within(before, &now)
        }
        (Shape::Text { format: None }, Shape::Text { .. } | Shape::Exactly(Value::String(_)))
        | (Shape::Boolean, Shape::Exactly(Value::Bool(_)))
        // One more of several texts.
        | (Shape::Exactly(Value::String(_)), Shape::Exactly(Value::String(_))) => true,
        (before, now) => before == now,
    };
    if before.iter().any(met) {
        return None;
    }
    Some(match now {
        Shape::Anything => "anything".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "a boolean".to_owned(),
        Shape::Number(number) => in_words(number),
        Shape::Text { format: None } => "any text".to_owned(),
        Shape::Text {
            format: Some(format),
        } => format!("a text of the form {format}"),
        Shape::Exactly(value) => value.to_string(),
        Shape::List(_) => "a list".to_owned(),
        Shape::Object(object) => told(*object),
    })
}

fn is_within(before: &Number, now: &Number) -> bool {
    (now.whole || !before.whole) && now.least >= before.least && now.most <= before.most
}

fn in_words(number: &Number) -> String {
    let kind = if number.whole {
        "an integer"
    } else {
        "a number"
    };
    match (number.least.is_finite(), number.most.is_finite()) {
        (true, true) => format!("{kind} from {} to {}", number.least, number.most),
        (true, false) => format!("{kind} from {}", number.least),
        (false, true) => format!("{kind} to {}", number.most),
        (false, false) => format!(
            "any {}",
            kind.split_once(' ').map_or(kind, |(_, noun)| noun)
        ),
    }
}

#[cfg(test)]
mod tests;
