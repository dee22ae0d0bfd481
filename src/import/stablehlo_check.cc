// StableHLO tests: the check dialect and the probes of its interpreter.
#include "import/stablehlo_check.h"

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

using Kind = Assertion::Kind;

Instr* constant_of(ShloOp& op) {
  return op.b.constant(value_or_throw(literal_of(op.attr("value"))));
}

template <Kind kKind>
void expect(ShloOp& op) {
  Assertion assertion;
  assertion.kind = kKind;
  assertion.tolerance = op.number("tolerance", assertion.tolerance);
  assertion.least_ulp = static_cast<uint64_t>(op.integer("min_ulp_difference", 0));
  assertion.most_ulp = static_cast<uint64_t>(op.integer("max_ulp_difference", 3));
  Instr* want = op.count() == 2 ? op.operand(1) : constant_of(op);
  op.importer.assert_that(op, assertion, op.operand(0), want);
}

// Returns the value, and records it under its name.
void probe(ShloOp& op) {
  op.importer.probes()[op.text("probe_id")].push_back(op.operand(0));
  op.give(op.operand(0));
}

void expect_serialized(ShloOp& op) {
  const std::string id = op.text("probe_id");
  const Instrs& values = op.importer.probes()[id];
  const auto iteration = static_cast<size_t>(op.integer("iteration", 0));
  if (iteration >= values.size()) fail("probe {}: no value {}", quoted(id), iteration);
  if (values[iteration]->parent() != op.b.computation())
    fail("probe {}: values inside a region are not kept", quoted(id));
  op.importer.assert_that(op, {}, op.operand(0), values[iteration]);
}

constexpr ShloEntry kOps[] = {
    {"check.expect_eq", expect<Kind::equal>, 2, 2, true},
    {"check.expect_eq_const", expect<Kind::equal>, 1, 1, true},
    {"check.expect_almost_eq", expect<Kind::almost_equal>, 2, 2},
    {"check.expect_almost_eq_const", expect<Kind::almost_equal>, 1, 1},
    {"check.expect_close", expect<Kind::close>, 2, 2},
    {"check.expect_serialized_eq", expect_serialized, 1, 1, true},
    {"interpreter.probe", probe, 1, 1, true},
};

}  // namespace

bool check_custom_call(ShloOp& op, std::string_view target) {
  if (!target.starts_with("check.")) return false;
  op.want_operands(2, 2);
  if (target == "check.expect_eq") {
    expect<Kind::equal>(op);
  } else if (target == "check.expect_almost_eq" || target == "check.eq") {
    expect<Kind::almost_equal>(op);
  } else if (target == "check.expect_close") {
    expect<Kind::close>(op);
  } else {
    return false;
  }
  // check.eq returns the verdict; here a constant, as nothing is computed from it.
  for (size_t i = 0; i < op.result_types.size(); ++i) op.give(op.b.full(op.result_shape(i), 1));
  return true;
}

std::span<const ShloEntry> shlo_check_ops() { return kOps; }

}  // namespace heddle::import
