#include "import/onnx_op.h"

#include <algorithm>

#include "hlo/views.h"

namespace heddle::import {

using proto::Attribute;
using proto::AttrType;

std::string_view normal_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string describe(const proto::Node& node) {
  std::string op(normal_domain(node.domain));
  if (!op.empty()) op += '.';
  op += node.op_type;
  op = quoted(op);
  op = op.substr(1, op.size() - 2);
  if (!node.name.empty()) return fmt::format("node {} ({})", quoted(node.name), op);
  const std::string_view output = node.outputs.empty() ? std::string_view() : node.outputs[0];
  return fmt::format("node #{} ({}, output {})", node.place, op, quoted(output));
}

bool is_uniform(const Literal& literal) {
  constexpr int64_t kMost = 1 << 20;
  const int64_t elems = literal.elems();
  if (elems < 2 || elems > kMost || tensor::is_complex(literal.type())) return false;
  for (int64_t i = 1; i < elems; ++i) {
    if (literal.get_bits(i) != literal.get_bits(0)) return false;
  }
  return true;
}

Instr* materialise(hlo::Builder& b, Value& value) {
  if (value.instr != nullptr) return value.instr;
  if (Instr* elements = element_by_element(b, value)) return value.instr = elements;
  const Literal& literal = *value.literal;
  // Uniform weights stay constants; uniform masks become broadcasts.
  const bool weights = value.is_initialiser && literal.type() != Type::pred;
  if (!weights && is_uniform(literal)) {
    Literal scalar(Shape::scalar(literal.type()));
    scalar.set_bits(0, literal.get_bits(0));
    value.instr = b.broadcast(b.constant(scalar), literal.shape().extents(), {});
  } else {
    value.instr = b.constant(literal);
    if (value.is_initialiser && !value.name.empty())
      b.computation()->rename(value.instr, value.name);
  }
  return value.instr;
}

namespace {

std::string kind_text(const Value& value) {
  if (value.kind == Value::Kind::nothing) return "an optional without a value";
  if (value.kind == Value::Kind::tensor) return to_string(value.shape());
  return fmt::format("a sequence of {}", value.elements.size());
}

}  // namespace

bool Op::stays_slice(const Instr* x) const {
  while (x->is(hlo::Opcode::slice) || hlo::is_view(x)) x = x->operand(0);
  return limits_.same_for_all_extents && x->is(hlo::Opcode::constant);
}

Op::Op(const proto::Node& node, int64_t opset, std::vector<Value*> inputs, hlo::Builder& builder,
       TensorSource& source, const Limits& limits, bool folding)
    : b(builder),
      node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      source_(source),
      limits_(limits),
      folding_(folding) {}

std::string Op::describe() const { return import::describe(node_); }

const Shape& Op::shape(size_t i) const {
  const Value& value = *this->value(i);
  if (!value.is_tensor()) fail("input {} is {}, wanted a tensor", i, kind_text(value));
  return value.shape();
}

Instr* Op::in(size_t i) {
  shape(i);
  return instr_of(*inputs_[i]);
}

Value* Op::value(size_t i) const {
  if (!has(i)) fail("input {} is missing", i);
  return inputs_[i];
}

const std::vector<Value*>& Op::sequence(size_t i) const {
  const Value& value = *this->value(i);
  if (value.kind != Value::Kind::sequence)
    fail("input {} is {}, wanted a sequence", i, kind_text(value));
  if (value.ragged) fail("input {}: what a loop has appended is known as a whole only", i);
  return value.elements;
}

Instr* Op::instr_of(Value& tensor) {
  if (!folding_) return materialise(b, tensor);
  Instr*& constant = scratch_[&tensor];
  if (constant == nullptr) constant = b.constant(*tensor.literal);
  return constant;
}

const Literal* Op::known(size_t i) const {
  return has(i) && inputs_[i]->literal ? &*inputs_[i]->literal : nullptr;
}

const std::vector<Literal>* Op::varying(size_t i) const {
  return has(i) ? inputs_[i]->trips.get() : nullptr;
}

const Literal& Op::known_or_fail(size_t i, const char* what) const {
  if (!has(i)) fail("input {} ({}) is missing", i, what);
  shape(i);
  const Literal* literal = known(i);
  if (literal == nullptr) fail_unknown(i, what);
  return *literal;
}

void Op::fail_unknown(size_t i, const char* what) const {
  fail_needing(inputs_[i],
               "{}: input {} ({}, value {}) must be known, but it depends on the model's inputs",
               describe(), i, what, quoted(inputs_[i]->name));
}

Ints Op::known_ints(size_t i, const char* what) const {
  const Literal& literal = known_or_fail(i, what);
  if (literal.shape().rank() > 1 ||
      (!tensor::is_integer(literal.type()) && literal.type() != Type::pred))
    fail("input {} ({}) is {}, wanted a list of integers", i, what, to_string(literal.shape()));
  if (literal.elems() > limits_.fold_elems)
    fail("input {} ({}) has {} elements, at most {} are supported", i, what, literal.elems(),
         limits_.fold_elems);
  Ints values(static_cast<size_t>(literal.elems()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = literal.get_s64(static_cast<int64_t>(k));
  return values;
}

int64_t Op::known_int(size_t i, const char* what) const {
  const Ints values = known_ints(i, what);
  if (values.size() != 1) fail("input {} ({}) has {} elements, wanted 1", i, what, values.size());
  return values[0];
}

std::vector<std::string> Op::known_texts(size_t i, const char* what) const {
  const Literal& ids = known_or_fail(i, what);
  if (!is_text(i)) fail("input {} ({}) is {}, wanted strings", i, what, to_string(ids.shape()));
  std::vector<std::string> texts;
  for (int64_t k = 0; k < ids.elems(); ++k)
    texts.push_back(vocabulary().text(static_cast<uint32_t>(ids.get_s64(k))));
  return texts;
}

Literal Op::text_literal(const std::vector<std::string>& texts, const Ints& extents) const {
  Literal ids(Shape::array(tensor::kTextType, extents));
  for (size_t k = 0; k < texts.size(); ++k)
    ids.set_s64(static_cast<int64_t>(k), vocabulary().id(texts[k]));
  return ids;
}

double Op::known_float(size_t i, const char* what) const {
  const Literal& literal = known_or_fail(i, what);
  if (literal.elems() != 1 || tensor::is_complex(literal.type()))
    fail("input {} ({}) is {}, wanted one number", i, what, to_string(literal.shape()));
  return literal.get_f64(0);
}

const Attribute* Op::find(std::string_view name) const {
  for (const Attribute& attribute : node_.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

const Attribute* Op::find(std::string_view name, AttrType type, const char* wanted) const {
  const Attribute* attribute = find(name);
  if (attribute == nullptr) return nullptr;
  read_.insert(attribute->name);
  if (!attribute->ref_attr_name.empty())
    fail("attribute {} refers to {}, which only a function's body may", quoted(name),
         quoted(attribute->ref_attr_name));
  if (attribute->type != type)
    fail("attribute {} has type {}, wanted {}", quoted(name), static_cast<int64_t>(attribute->type),
         wanted);
  return attribute;
}

int64_t Op::int_attr(std::string_view name, int64_t otherwise) const {
  const Attribute* attribute = find(name, AttrType::int_, "INT");
  return attribute != nullptr ? attribute->i : otherwise;
}

double Op::float_attr(std::string_view name, double otherwise) const {
  const Attribute* attribute = find(name, AttrType::float_, "FLOAT");
  return attribute != nullptr ? static_cast<double>(attribute->f) : otherwise;
}

std::string Op::string_attr(std::string_view name, std::string_view otherwise) const {
  const Attribute* attribute = find(name, AttrType::string, "STRING");
  return std::string(attribute != nullptr ? attribute->s : otherwise);
}

Ints Op::ints_attr(std::string_view name, Ints otherwise) const {
  const Attribute* attribute = find(name, AttrType::ints, "INTS");
  return attribute != nullptr ? attribute->ints : std::move(otherwise);
}

std::vector<float> Op::floats_attr(std::string_view name) const {
  const Attribute* attribute = find(name, AttrType::floats, "FLOATS");
  return attribute != nullptr ? attribute->floats : std::vector<float>();
}

std::vector<std::string> Op::strings_attr(std::string_view name) const {
  const Attribute* attribute = find(name, AttrType::strings, "STRINGS");
  if (attribute == nullptr) return {};
  return {attribute->strings.begin(), attribute->strings.end()};
}

const proto::Tensor* Op::tensor_attr(std::string_view name) const {
  const Attribute* attribute = find(name, AttrType::tensor, "TENSOR");
  if (attribute == nullptr) return nullptr;
  if (attribute->t == nullptr) fail("attribute {} has no tensor", quoted(name));
  return attribute->t.get();
}

Literal Op::tensor_value(const proto::Tensor& tensor, std::string_view what) const {
  return to_literal(tensor, source_, fmt::format("{}: {}", describe(), what));
}

void Op::ignore(std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names) {
    if (const Attribute* attribute = find(name)) read_.insert(attribute->name);
  }
}

void Op::check_all_read() const {
  for (const Attribute& attribute : node_.attributes) {
    if (!read_.contains(attribute.name))
      fail("attribute {} is not one of this operator's in opset {}", quoted(attribute.name),
           opset_);
  }
}

int64_t Op::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    fail("axis {} is out of range for rank {}: wanted {} to {}", axis, rank, -rank, rank - 1);
  return axis < 0 ? axis + rank : axis;
}

int64_t Op::axis_attr(int64_t otherwise, int64_t rank) const {
  return axis(int_attr("axis", otherwise), rank);
}

Ints Op::axes(const Ints& axes, int64_t rank) const {
  Ints result;
  for (int64_t a : axes) result.push_back(axis(a, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    fail("axes [{}] name a dimension twice", fmt::join(axes, ","));
  return result;
}

const Ints& Op::check_extents(const Ints& extents) const {
  if (static_cast<int64_t>(extents.size()) > kMaxRank)
    fail("a value of rank {}, at most {} is supported", extents.size(), kMaxRank);
  if (!sensible_extents(extents, limits_.value_elems))
    fail("a value of shape [{}]; dimensions must be 0 or more and their product at most {}",
         fmt::join(extents, ","), limits_.value_elems);
  return extents;
}

void Op::check_float(size_t i) const {
  if (!tensor::is_float(type(i)))
    fail("input {} is {}, wanted a floating point type", i, to_string(shape(i)));
}

void Op::check_builder() const {
  if (!b.status()) fail("{}", b.status().error().message);
}

}  // namespace heddle::import
