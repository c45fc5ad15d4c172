//! Which queue a packet comes out of, when a TUN has several: always the same for one flow.
//!
//! Left alone, the kernel takes a flow to the queue where its packets in the other direction were last written. When these move from one worker to
//! another, so does the flow, and packets still in the old queue are overtaken. Our program knows nothing but the packet: addresses, and ports
//! if it is plain TCP or UDP. Fragments go by their addresses, because only the first has ports.

use super::bpf::Instruction;

// Operation codes of linux/bpf_common.h and linux/bpf.h: class, size or source, and operation.
const LOAD_BYTE: u8 = 0x30;
const LOAD_HALF: u8 = 0x28;
const LOAD_WORD: u8 = 0x20;
const MOVE: u8 = 0xb7;
const MOVE_REGISTER: u8 = 0xbf;
const XOR_REGISTER: u8 = 0xac;
const MULTIPLY: u8 = 0x24;
const SHIFT_RIGHT: u8 = 0x74;
const JUMP: u8 = 0x05;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_BIT: u8 = 0x45;
const EXIT: u8 = 0x95;

/// What loads leave, and what is returned.
const RESULT: u8 = 0;
/// The program's argument.
const ARGUMENT: u8 = 1;
/// Where loads expect the packet.
const PACKET: u8 = 6;
/// The hash.
const HASH: u8 = 7;
/// Loads leave this alone.
const SCRATCH: u8 = 8;

/// An odd number without pattern: 2³² divided by the golden ratio.
const FACTOR: i32 = 0x9e37_79b1_u32.cast_signed();

/// The program. A load beyond the packet's end ends it with 0.
pub(super) fn program() -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.push(MOVE_REGISTER, PACKET, ARGUMENT, 0, 0);
    program.push(MOVE, HASH, 0, 0, 0);
    program.load(LOAD_BYTE, 0);
    program.push(SHIFT_RIGHT, RESULT, 0, 0, 4);
    let to_v6 = program.jump(JUMP_IF_EQUAL, RESULT, 6);

    // IPv4: addresses, and the ports behind a header of 20 bytes if neither options nor fragments are in the way.
    program.mix(&[12, 16]);
    program.load(LOAD_HALF, 6);
    let fragment = program.jump(JUMP_IF_BIT, RESULT, 0x3fff);
    program.load(LOAD_BYTE, 0);
    let plain = program.jump(JUMP_IF_EQUAL, RESULT, 0x45);
    let options = program.jump(JUMP, 0, 0);
    program.here(plain);
    program.load(LOAD_BYTE, 9);
    let tcp = program.jump(JUMP_IF_EQUAL, RESULT, 6);
    let udp = program.jump(JUMP_IF_EQUAL, RESULT, 17);
    let other = program.jump(JUMP, 0, 0);
    program.here(tcp);
    program.here(udp);
    program.mix(&[20]);
    let done = program.jump(JUMP, 0, 0);

    program.here(to_v6);
    program.mix(&[8, 12, 16, 20, 24, 28, 32, 36]);
    program.load(LOAD_BYTE, 6);
    let tcp6 = program.jump(JUMP_IF_EQUAL, RESULT, 6);
    let udp6 = program.jump(JUMP_IF_EQUAL, RESULT, 17);
    let other6 = program.jump(JUMP, 0, 0);
    program.here(tcp6);
    program.here(udp6);
    program.mix(&[40]);

    for to_end in [fragment, options, other, done, other6] {
        program.here(to_end);
    }
    // The kernel takes 16 bits of the result; the upper ones are mixed best.
    program.push(MOVE_REGISTER, RESULT, HASH, 0, 0);
    program.push(SHIFT_RIGHT, RESULT, 0, 0, 16);
    program.push(EXIT, 0, 0, 0, 0);
    program.instructions
}

#[derive(Default)]
struct Assembler {
    instructions: Vec<Instruction>,
}

/// A jump whose goal is still ahead.
#[derive(Clone, Copy)]
struct Jump(usize);

impl Assembler {
    fn push(&mut self, code: u8, destination: u8, source: u8, offset: i16, constant: i32) {
        self.instructions.push(Instruction {
            code,
            registers: source << 4 | destination,
            offset,
            constant,
        });
    }

    /// Loads from the packet, in its byte order.
    fn load(&mut self, code: u8, at: i32) {
        self.push(code, 0, 0, 0, at);
    }

    /// Takes words of the packet into the hash.
    fn mix(&mut self, words: &[i32]) {
        for at in words {
            self.load(LOAD_WORD, *at);
            self.push(XOR_REGISTER, HASH, RESULT, 0, 0);
            self.push(MULTIPLY, HASH, 0, 0, FACTOR);
            // Multiplying moves bits up only; this brings them down again.
            self.push(MOVE_REGISTER, SCRATCH, HASH, 0, 0);
            self.push(SHIFT_RIGHT, SCRATCH, 0, 0, 15);
            self.push(XOR_REGISTER, HASH, SCRATCH, 0, 0);
        }
    }

    fn jump(&mut self, code: u8, register: u8, constant: i32) -> Jump {
        self.push(code, register, 0, 0, constant);
        Jump(self.instructions.len() - 1)
    }

    /// Lets a jump lead to what comes next.
    fn here(&mut self, from: Jump) {
        let distance = self.instructions.len() - from.0 - 1;
        self.instructions[from.0].offset = i16::try_from(distance).unwrap_or(i16::MAX);
    }
}
