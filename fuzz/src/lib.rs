//! Mutation of JSON by its structure: most of what a byte-wise mutator makes of a record is no record any more.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// A custom mutator of libFuzzer for inputs that are JSON. One in four mutations is byte-wise all the same.
pub fn mutate_json(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random(u64::from(seed) | 1 << 40);
    let tree = serde_json::from_slice::<Value>(&data[..size]);
    let Ok(mut tree) = tree else {
        return fuzzer_mutate(data, size, max_size);
    };
    if random.one_in(4) {
        return fuzzer_mutate(data, size, max_size);
    }
    for _ in 0..=random.below(3) {
        change(&mut tree, &mut random);
    }
    match serde_json::to_vec(&tree) {
        Ok(text) if text.len() <= max_size => {
            data[..text.len()].copy_from_slice(&text);
            text.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
}

fn change(tree: &mut Value, random: &mut Random) {
    let elsewhere = pick(tree, random).clone();
    let place = pick(tree, random);
    if random.one_in(3) {
        *place = elsewhere;
        return;
    }
    match place {
        Value::Array(items) if !items.is_empty() && !random.one_in(4) => {
            let at = random.below(items.len());
            match random.below(3) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, elsewhere),
                _ => items.push(items[at].clone()),
            }
        }
        Value::Object(fields) if !fields.is_empty() && !random.one_in(4) => {
            change_fields(fields, elsewhere, random);
        }
        Value::Number(number) if !random.one_in(3) => {
            let old = number.as_f64().unwrap_or_default();
            *place = match random.below(6) {
                0 => json!(old + 1.0),
                1 => json!(-old),
                2 => json!(old * 1000.0),
                3 => json!(old / 1000.0),
                4 => json!(old as u64),
                _ => json!((old as u64).wrapping_add(1)),
            };
        }
        Value::String(text) if !random.one_in(3) => match random.below(3) {
            0 => text.push_str(random.of(&TEXTS)),
            1 => drop(text.pop()),
            _ => *text = random.of(&TEXTS).to_owned(),
        },
        other => *other = anything(random),
    }
}

fn change_fields(fields: &mut Map<String, Value>, value: Value, random: &mut Random) {
    let Some(name) = fields.keys().nth(random.below(fields.len())).cloned() else {
        return;
    };
    match random.below(3) {
        0 => drop(fields.remove(&name)),
        1 => drop(fields.insert(name, value)),
        _ => {
            let moved = fields.remove(&name).unwrap_or_default();
            fields.insert(format!("{name}{}", random.of(&TEXTS)), moved);
        }
    }
}

/// Some node, at any depth.
fn pick<'a>(tree: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let children = match &*tree {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    if children == 0 || random.one_in(6) {
        return tree;
    }
    let at = random.below(children);
    let child = match tree {
        Value::Array(items) => items.get_mut(at),
        Value::Object(fields) => fields.values_mut().nth(at),
        _ => None,
    };
    // There is one, by the count above.
    pick(child.unwrap(), random)
}

fn anything(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Null,
        1 => json!(random.one_in(2)),
        2 => json!(random.of(&TEXTS)),
        3 => json!(random.of(&COUNTS)),
        4 => json!(random.of(&FLOATS)),
        _ => json!([]),
    }
}

const TEXTS: [&str; 14] = [
    "",
    "0",
    "wg0",
    "\u{1b}[2J",
    "a\nb",
    "$(x)",
    "'; x; '",
    "10.0.0.0/0",
    "fd00::1/128",
    "192.0.2.1:1",
    "0-18446744073709551615",
    "bbr",
    "ü\u{202e}",
    "a text that is longer than most, with blanks and more blanks, until it does not fit a line",
];
const COUNTS: [u64; 9] = [
    0,
    1,
    3,
    65_535,
    65_536,
    4_294_967_295,
    4_294_967_296,
    9_007_199_254_740_993,
    u64::MAX,
];
const FLOATS: [f64; 8] = [-1.0, 0.5, 1.0, 1e-320, 1e9, 1e308, -1e308, 1.8e19];

/// xorshift64*: the same mutation for the same seed, as libFuzzer asks.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
