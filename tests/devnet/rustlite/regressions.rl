//= break-in-if | 4 -> 4
pub fn f(n: i32) -> i32 { let mut i = 0; loop { if i >= n { break; } i += 1; } i }

//= continue-in-if | 9 -> 25
pub fn f(n: i32) -> i32 { let mut i = 0; let mut s = 0; while i < n { i += 1; if i % 2 == 0 { continue; } s += i; } s }

//= break-in-match | -> 5
pub fn f() -> i32 { let mut i = 0; loop { i += 1; match i { 5 => break, 3 => continue, _ => {} } } i }

//= break-in-nested-if | -> 6
pub fn f() -> i32 { let mut i = 0; loop { i += 1; if i > 2 { if i > 5 { break } else { continue; } } } i }

//= break-inner-loop | -> 12
pub fn f() -> i32 { let mut n = 0; let mut i = 0; while i < 3 { i += 1; loop { n += 1; if n % 4 == 0 { break; } } } n }

//= break-in-logic | -> 9
pub fn f() -> i32 { let mut i = 0; loop { i += 1; let b = i < 9 || { break }; b; } i }

//= hex | -> 756
pub fn f() -> i32 { 0xFF + 0x1F_0 + 0b101 }

//= hex-bit-pattern | -> -1
pub fn f() -> i32 { 0xFFFF_FFFF }

//= char | -> 128924
pub fn f() -> i32 { 'A' + '\n' + '\'' + '\x41' + 'é' + '\u{1F600}' }

//= compound | 10 -> 86
pub fn f(a: i32) -> i32 { let mut x = a; x += 5; x -= 1; x *= 6; x /= 4; x %= 100; x <<= 3; x >>= 1; x &= 0x7e; x |= 1; x ^= 3; x }

//= const | -> -73472
const W: i32 = 256;
const AREA: i32 = W * (100 + 44) / 2;
const NEG: i64 = -AREA as i64 << 2;
pub fn f() -> i64 { NEG + W as i64 }

//= const-kinds | -> 125.0
const B: bool = !(1 > 2) && true;
const F: f32 = 1.5 * 2.0;
const C: i32 = 'z';
pub fn f() -> f32 { if B { F + C as f32 } else { 0.0 } }

//= const-shadowed | -> 6
const X: i32 = 1;
pub fn f() -> i32 { let y = X; let X = 5; X + y }

//= const-text | -> 1
const T: &str = "unused é";
pub fn f() -> i32 { 1 }

//= trailing-commas | -> 4
enum E { A, B, }
fn g(a: i32, b: i32,) -> i32 { a + b }
pub fn f() -> i32 { match g(1, 2,) { 3 => 4, _ => 5, } }

//= negative-patterns | -1 -> 1 | -3 -> 2 | -2147483648 -> 3 | 1 -> 0
pub fn f(a: i32) -> i32 { match a { -1 => 1, -2 | -3 => 2, -2147483648 => 3, _ => 0 } }

//= shadowing | 3 -> 9
pub fn f(x: i32) -> i32 { let x = x + 1; let x = { let x = x * 2; x + 1 }; if true { let x = 100; x; } x }

//= shadow-type | 3 -> 4
pub fn f(x: i32) -> i64 { let x = x as i64; let x = x + 1; x }

//= tail-paren | 1 -> 3 | 0 -> 2
pub fn f(a: i32) -> i32 { let mut b = 1; if a > 0 { b = 2; } (b + 1) }

//= tail-minus | 1 -> 1 | 0 -> -3
pub fn f(a: i32) -> i32 { if a > 0 { return 1; } -3 }

//= name-in-if-head | 1, 4 -> 5
pub fn f(x: bool, n: i32) -> i32 { let mut i = 0; if x { i = 1; } while i < n { i += 2 } match n { _ => i } }

//= keyword-prefix | -> 4
fn iffy(letter: i32) -> i32 { letter }
pub fn f() -> i32 { let returned = iffy(3); let matches = 1; returned + matches }

