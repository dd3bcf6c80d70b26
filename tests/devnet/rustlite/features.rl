//= constant | -> 42
pub fn f() -> i32 { 42 }

//= unit | -> None
pub fn f() {}

//= unit-type | -> None
pub fn f() -> () { () }

//= params | 7, 9 -> -2
pub fn f(a: i32, b: i32,) -> i32 { a - b }

//= mut-param | 7 -> 8
pub fn f(mut a: i32) -> i32 { a += 1; a }

//= i64 | 3 -> 12000000000
pub fn f(a: i64) -> i64 { a * 4_000_000_000 }

//= f32 | 3.0 -> 2.75
pub fn f(a: f32) -> f32 { a * 0.5 + 1.25 }

//= f32-exponent | -> 152.0
pub fn f() -> f32 { 1.5e2 + 1e1 + 2f32 - 1_0.0f32 }

//= bool | 1 -> 1 | 3 -> 0 | 9 -> 1
pub fn f(a: i32) -> bool { !(a > 2) || a == 9 }

//= wraps | 2147483647 -> -2147483648
pub fn f(a: i32) -> i32 { a + 1 }

//= precedence | -> 11
pub fn f() -> i32 { 1 + 2 * 3 - 8 / 4 % 3 << 1 & 6 ^ 1 | 8 }

//= precedence-compare | 8 -> 0 | 1 -> 1
pub fn f(a: i32) -> bool { a & 1 == 1 || a | 1 == 9 && a ^ 2 < 3 }

//= left-associative | -> 85
pub fn f() -> i32 { 100 - 10 - 1 - 24 / 2 / 3 }

//= unary-cast | 5 -> -10
pub fn f(a: i32) -> i64 { -a as i64 * 2 }

//= casts | 2.9 -> 100 | -2.9 -> 96
pub fn f(a: f32) -> i32 { a as i32 + true as i32 + 'a' as i32 }

//= cast-saturates | -> 2147483647
pub fn f() -> i32 { 1e30 as i32 }

//= cast-wraps | 4294967301 -> 5
pub fn f(a: i64) -> i32 { a as i32 }

//= shift | 1, 33 -> 8589934591
pub fn f(a: i64, n: i32) -> i64 { (a << n) + (-8 >> n) }

//= bit-not | 5 -> -6
pub fn f(a: i32) -> i32 { !a }

//= short-circuit | 0 -> 0 | 3 -> 1 | 9 -> 0
pub fn f(a: i32) -> bool { a != 0 && 10 / a > 2 }

//= if-else-tail | 5 -> 1 | -5 -> -1 | 0 -> 0
pub fn f(a: i32) -> i32 { if a > 0 { 1 } else if a < 0 { -1 } else { 0 } }

//= if-value | -5 -> 6
pub fn f(a: i32) -> i32 { let b = if a > 0 { a } else { -a } + 1; b }

//= minus-if | 1 -> -1 | 0 -> -2
pub fn f(t: i32) -> i32 { -(if t > 0 { 1 } else { 2 }) }

//= if-diverges | 1 -> 2 | 0 -> 7
pub fn f(a: i32) -> i32 { let b = if a > 0 { a } else { return 7; }; b + 1 }

//= while | 10 -> 55
pub fn f(n: i32) -> i32 { let mut i = 0; let mut s = 0; while i < n { i += 1; s += i; } s }

//= loop-return | 10 -> 12
pub fn f(n: i32) -> i32 { let mut i = 0; loop { i += 3; if i > n { return i; } } }

//= call | 2 -> 13
fn g(a: i32) -> i32 { a * a }
pub fn f(a: i32) -> i32 { g(a) + g(a + 1,) }

//= recursion | 10 -> 55
pub fn f(n: i32) -> i32 { if n < 2 { n } else { f(n - 1) + f(n - 2) } }

//= unit-argument | -> 4
fn g(u: (), a: i32) -> i32 { u; a }
pub fn f() -> i32 { let u = (); g(u, 4) }

//= match | 0 -> 10 | 2 -> 20 | 99 -> 30 | 5 -> 40
pub fn f(a: i32) -> i32 { match a { 0 => 10, 1 | 2 => 20, 'c' => 30, _ => 40, } }

//= match-bool | 1 -> 1 | 0 -> 2
pub fn f(a: bool) -> i32 { match a { true => 1, false => 2 } }

//= match-i64 | 5000000000 -> 1 | -1 -> 2 | 0 -> 3
pub fn f(a: i64) -> i32 { match a { 5000000000 => 1, -1 => 2, _ => 3 } }

//= match-const | 7 -> 1 | 8 -> 0
const K: i32 = 7;
pub fn f(a: i32) -> i32 { match a { K => 1, _ => 0 } }

//= match-blocks | 1 -> 5 | 2 -> 3 | 3 -> 3
pub fn f(a: i32) -> i32 { let mut x = a; match a { 1 => { x = 5; } 2 => x += 1, _ => {} } x }

//= match-diverges | 1 -> 9 | 4 -> 8
pub fn f(a: i32) -> i32 { let b = match a { 1 => return 9, _ => a }; b * 2 }

//= enum | -> 21
enum E { A, B, }
fn g(e: E) -> i32 { match e { E::A => 1, E::B => 2 } }
pub fn f() -> i32 { g(E::B) * 10 + E::B as i32 }

//= enum-compare | 1 -> 1 | 0 -> 0
enum E { A, B }
pub fn f(a: i32) -> bool { let e = if a > 0 { E::A } else { E::B }; e == E::A }

//= empty-enum | -> 3
enum E{}
fn g(e: E) -> i32 { match e {} }
pub fn f() -> i32 { 3 }

//= comments | -> 3
// a é
/* b * / ** */
pub fn f(/**/) -> i32 { 1 /* é */ + /*/ */ 2 } // end

//= block-scope | -> 1
pub fn f() -> i32 { let x = 1; { let x = 2; x; } x }

//= block-value | -> 16
pub fn f() -> i32 { let x = { let y = 4; y * y }; x }

//= underscore | -> 2
fn g() -> i32 { 3 }
pub fn f() -> i32 { let _ = g(); let _x = 1; g(); 2 }

//= literal-takes-type | 1099511627776 -> 1
pub fn f(a: i64) -> bool { 1 + 2 < a }

//= suffix | -> 21
pub fn f() -> i64 { 5i64 + 0x1_0i64 }

//= min-int | -> -2147483648
pub fn f() -> i32 { -2147483648 }

//= dead-code | -> 1
pub fn f() -> i32 { return 1; let x = 2; x + 1 }

//= never-operand | -> 1
pub fn f() -> i32 { (return 1) + 2 }

//= never-local | 1 -> 4
pub fn f(c: bool) -> i32 { let x = return 4; if c { x } else { 1 } }

//= return-unit | 1 -> None
pub fn f(a: i32) { if a > 0 { return; } return () }

