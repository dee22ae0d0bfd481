// Every operator of ops.def on every type that it takes, against the interpreter's arithmetic
// (kernel/scalar.h) on special and random operands; conversions between all types.
#include "emit/llvm/arith.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "emit/llvm/test_code.h"
#include "kernel/op_info.h"
#include "kernel/scalar.h"
#include "kernel/verify.h"

namespace heddle::emit {
namespace {

using kernel::ExprId;
using kernel::Kernel;
using kernel::Op;
using kernel::Space;

constexpr Type kArithmetic[] = {Type::pred, Type::s8,  Type::s16, Type::s32, Type::s64, Type::u8,
                                Type::u16,  Type::u32, Type::u64, Type::f32, Type::f64};
constexpr Type kStorage[] = {
    Type::f16,    Type::bf16,       Type::f8e5m2,     Type::f8e4m3,        Type::f8e4m3fn,
    Type::f8e3m4, Type::f8e5m2fnuz, Type::f8e4m3fnuz, Type::f8e4m3b11fnuz, Type::f8e8m0fnu};

uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<uint64_t> special(Type type) {
  std::vector<uint64_t> result;
  if (tensor::is_float(type)) {
    for (double v : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     1.5,
                     2.5,
                     -2.5,
                     3.0,
                     1e-3,
                     127.0,
                     128.0,
                     -129.0,
                     255.5,
                     32767.5,
                     65504.0,
                     65520.0,
                     2147483647.0,
                     2147483648.0,
                     -2147483649.0,
                     4294967295.0,
                     4294967296.0,
                     9.2233720368547758e18,
                     1.8446744073709552e19,
                     1e30,
                     1e-30,
                     1e-40,
                     1e-45,
                     3.4028234663852886e38,
                     1e300,
                     1e-310,
                     5e-324,
                     1.7976931348623157e308,
                     HUGE_VAL,
                     -HUGE_VAL,
                     std::nan("")}) {
      result.push_back(tensor::float_to_bits(type, v));
    }
    return result;
  }
  for (int64_t v :
       {0, 1, 2, 3, 5, 7, 8, 9, 31, 32, 63, 64, 100, 127, 128, 255, 256, -1, -2, -7, -8, -128}) {
    result.push_back(static_cast<uint64_t>(v));
  }
  for (int shift : {15, 31, 53, 62, 63}) {
    for (uint64_t near : {~uint64_t{0}, uint64_t{0}, uint64_t{1}}) {
      result.push_back((uint64_t{1} << shift) + near);
    }
  }
  return result;
}

// The bits of operand `which` of case i: all pairs of the special ones, then random ones.
uint64_t operand_bits(Type type, size_t i, size_t which, uint64_t& state) {
  std::vector<uint64_t> specials = special(type);
  size_t n = specials.size();
  size_t pairs[] = {i / n, i % n, (i * 7 + 3) % n};
  if (i < n * n) return kernel::canonical_bits(type, specials[pairs[which] % n]);
  uint64_t random = next(state);
  if (random % 3 == 0) {  // of like size, so that sums cancel
    if (type == Type::f32) random = 0x3f000000 | (random >> 8 & 0x80ffffff);
    if (type == Type::f64) random = uint64_t{0x3fe} << 52 | (random >> 8 & 0x801fffffffffffff);
    if (tensor::is_integer(type)) random &= 0xff;
  }
  return kernel::canonical_bits(type, random);
}

struct Columns {
  Type type;
  std::vector<char> bytes;
  explicit Columns(Type t, size_t n)
      : type(t), bytes(n * static_cast<size_t>(tensor::type_bytes(t)) + 64) {}
  void set(size_t i, uint64_t bits) { std::memcpy(&bytes[i * size()], &bits, size()); }
  uint64_t get(size_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, &bytes[i * size()], size());
    return kernel::canonical_bits(type, bits);
  }
  size_t size() const { return static_cast<size_t>(tensor::type_bytes(type)); }
};

struct OneOp {
  Op op;
  Type operand, result;
};

// z_j[i] = op_j(a[i], b[i], c[i]), one vector loop for each operator, or a serial one; all operands
// are of one type except select's condition.
Kernel make_kernel(const std::vector<OneOp>& ops, int64_t n, bool scalar) {
  Kernel k;
  k.name = "f";
  std::vector<kernel::BufferId> in, out;
  for (Type type : {Type::pred, ops[0].operand, ops[0].operand, ops[0].operand}) {
    in.push_back(k.add_buffer({"x", type, {n}}));
  }
  for (const OneOp& one : ops) {
    out.push_back(k.add_buffer({"z", one.result, {n}, Space::global, kernel::Access::out}));
  }
  std::vector<kernel::Stmt> body;
  for (size_t j = 0; j < ops.size(); ++j) {
    kernel::VarId i = k.add_var("i");
    kernel::Expr expr{ops[j].op, ops[j].result, {}};
    size_t first = ops[j].op == Op::select ? 0 : 1;
    for (size_t o = 0; o < static_cast<size_t>(kernel::op_operands(ops[j].op)); ++o) {
      size_t column = first == 0 || o > 0 ? o + first : 1;
      expr.operands.push_back(k.load(in[column], {k.ref(i)}));
    }
    ExprId value = k.add(std::move(expr));
    auto kind = scalar ? kernel::LoopKind::serial : kernel::LoopKind::vector;
    body.push_back(kernel::make_loop(
        kind, i, k.constant(n), {kernel::make_store(out[j], {k.ref(i)}, value)}, scalar ? 0 : 16));
  }
  k.phases = {{{{{}, 1, std::move(body)}}}};
  return k;
}

bool same(Type type, uint64_t got, uint64_t want, bool any_zero) {
  if (got == want) return true;
  if (!tensor::is_float(type)) return false;
  double a = tensor::float_from_bits(type, got), b = tensor::float_from_bits(type, want);
  return (std::isnan(a) && std::isnan(b)) || (any_zero && a == 0 && b == 0);
}

uint64_t expected(const OneOp& one, uint64_t c, uint64_t x, uint64_t y, uint64_t z) {
  if (one.op == Op::convert) return kernel::convert_bits(one.operand, one.result, x);
  if (one.op == Op::bitcast) return kernel::canonical_bits(one.result, x);
  if (one.op == Op::select) return kernel::evaluate(one.op, one.operand, c, x, y);
  return kernel::evaluate(one.op, one.operand, x, y, z);
}

// `ops`: of one operand type.
void check(const std::vector<OneOp>& ops, const target::Target& target, size_t n, bool scalar) {
  Type type = ops[0].operand;
  Kernel k = make_kernel(ops, static_cast<int64_t>(n), scalar);
  Status valid = kernel::verify(k);
  ASSERT_TRUE(valid.has_value()) << valid.error().message;
  auto code = TestCode::make(k, target);
  ASSERT_TRUE(code.has_value()) << code.error().message;
  std::vector<Columns> in = {Columns(Type::pred, n), Columns(type, n), Columns(type, n),
                             Columns(type, n)};
  uint64_t state = static_cast<uint64_t>(type);
  for (size_t i = 0; i < n; ++i) {
    in[0].set(i, next(state) & 1);
    for (size_t j = 0; j < 3; ++j) in[j + 1].set(i, operand_bits(type, i, j, state));
  }
  std::vector<Columns> out;
  for (const OneOp& one : ops) out.emplace_back(one.result, n);
  std::vector<void*> memory;
  for (auto* columns : {&in, &out}) {
    for (Columns& column : *columns) memory.push_back(column.bytes.data());
  }
  (*code)->run(memory, {});
  for (size_t j = 0; j < ops.size(); ++j) {
    const OneOp& one = ops[j];
    bool any_zero = one.op == Op::min || one.op == Op::max;  // +0 > -0 is not promised
    for (size_t i = 0; i < n; ++i) {
      uint64_t c = in[0].get(i), x = in[1].get(i), y = in[2].get(i), z = in[3].get(i);
      uint64_t want = expected(one, c, x, y, z), got = out[j].get(i);
      ASSERT_TRUE(same(one.result, got, want, any_zero))
          << kernel::op_text(one.op) << " " << tensor::type_name(one.operand) << " -> "
          << tensor::type_name(one.result) << " on " << target.name << (scalar ? ", scalar" : "")
          << std::hex << ": of 0x" << x << ", 0x" << y << ", 0x" << z << " got 0x" << got
          << ", want 0x" << want;
    }
  }
}

// One target for a case, in turn; all of them where HEDDLE_THOROUGH is set.
bool left_out(size_t target, size_t turn, size_t targets) {
  return std::getenv("HEDDLE_THOROUGH") == nullptr && turn % targets != target;
}

// The AVX-512 targets make the same code for these; one of them is enough.
std::vector<target::Target> targets() {
  std::vector<target::Target> result = runnable_targets();
  std::erase_if(result, [](const target::Target& target) { return target.name == "spr"; });
  return result;
}

bool exact(Op op) {
  return !is_math(op) && op != Op::lane && op != Op::shuffle_xor && op != Op::load &&
         op != Op::constant && op != Op::var && op != Op::dim && op != Op::convert &&
         op != Op::bitcast;
}

constexpr Op kOps[] = {
#define HEDDLE_KERNEL_OP(name, ...) Op::name,
#include "kernel/ops.def"
};

TEST(Arith, EveryOperatorOnEveryType) {
  report_missing_targets();
  std::vector<target::Target> all = targets();
  size_t turn = 0, checked = 0;
  for (Type type : kArithmetic) {
    std::vector<OneOp> ops;
    for (Op op : kOps) {
      if (!exact(op) || !kernel::op_takes(op, type)) continue;
      ops.push_back({op, type, kernel::op_result(op, type)});
    }
    checked += ops.size();
    for (bool scalar : {false, true}) {
      ++turn;
      for (size_t t = 0; t < all.size(); ++t) {
        if (left_out(t, turn, all.size())) continue;
        check(ops, all[t], 2500, scalar);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GE(checked, 250u);
}

TEST(Arith, EveryConversion) {
  std::vector<Type> types(std::begin(kArithmetic), std::end(kArithmetic));
  types.insert(types.end(), std::begin(kStorage), std::end(kStorage));
  std::vector<target::Target> all = targets();
  size_t turn = 0;
  for (Type from : types) {
    std::vector<OneOp> ops;
    for (Type to : types) {
      if (from != to) ops.push_back({Op::convert, from, to});
    }
    ++turn;
    for (size_t t = 0; t < all.size(); ++t) {
      if (left_out(t, turn, all.size())) continue;
      // Small types have 256 or 65536 patterns; special operands and random ones find most.
      check(ops, all[t], 2500, false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Arith, BitcastsOfOneWidth) {
  target::Target target = targets().back();
  for (auto [from, to] : {std::pair(Type::f32, Type::s32),
                          {Type::u32, Type::f32},
                          {Type::f64, Type::u64},
                          {Type::s64, Type::f64},
                          {Type::f16, Type::u16},
                          {Type::s16, Type::bf16},
                          {Type::bf16, Type::f16},
                          {Type::u8, Type::f8e4m3fn}}) {
    check({{Op::bitcast, from, to}}, target, 1500, false);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::emit
