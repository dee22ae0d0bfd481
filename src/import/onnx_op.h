// Op: what a handler sees of one node. A handler is a small function that reads inputs and
// attributes and returns the node's outputs; the table {operator, handler} is onnx_ops.h.
//
// Handlers run in one of two ways, and cannot tell which: into the entry computation, or, when all
// inputs are small and known, into a scratch computation that is evaluated at once and thrown away
// (fold.h). Errors are thrown (failure.h), with the node's name in front.
#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "import/failure.h"
#include "import/onnx_proto.h"
#include "import/onnx_tensor.h"
#include "tensor/index_check.h"

namespace heddle::import {

using hlo::Direction;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

// An ONNX value. A tensor: an instruction, a known literal (initialisers, constants, shape
// arithmetic), or, once a known one has been used, both. A sequence: its elements, whose number is
// always known, or, where it is ragged, what these are as a whole. Nothing: an optional without a
// value.
struct Value {
  enum class Kind { tensor, sequence, nothing };
  // A sequence whose elements are all that there is of an array along an axis, one by one.
  struct Pieces {
    Value* array = nullptr;
    int64_t axis = 0;
  };
  // A sequence that is told by two arrays, `elements`. Element i is the first one's piece i along
  // `axis`, its elements in order and each as often as element i of the other one (integers) says:
  // that is dimension `dim` of `extents`, where it is 0.
  struct Ragged {
    int64_t axis = 0, dim = 0;
    std::vector<int64_t> extents;
  };
  Kind kind = Kind::tensor;
  Instr* instr = nullptr;
  std::optional<Literal> literal;
  std::vector<Value*> elements;  // tensors
  std::optional<Pieces> pieces;
  std::optional<Ragged> ragged;
  // Inside a loop of a known number of trips: the value of each trip, where small and known.
  std::shared_ptr<const std::vector<Literal>> trips;
  std::string_view name;
  std::string key;  // in Options::decided; empty: it is no computed tensor, or has no name there
  // Of the nodes that computed it at import: they are part of what its readers do.
  hlo::NodeNames nodes;
  bool is_initialiser = false;
  bool text = false;  // a tensor of strings: ids (tensor/vocabulary.h)
  bool is_tensor() const { return kind == Kind::tensor; }
  const Shape& shape() const { return literal ? literal->shape() : instr->shape(); }
};

// What a handler returns, one an output.
struct Output {
  Output(Instr* value) : instr(value) {}                // NOLINT: an instruction is an output
  Output(Literal value) : literal(std::move(value)) {}  // NOLINT: so is a known value
  Output(Value* value) : same(value) {}                 // NOLINT: and an input, passed on
  static Output sequence(std::vector<Output> elements) {
    Output output(static_cast<Instr*>(nullptr));
    output.kind = Value::Kind::sequence;
    output.elements = std::move(elements);
    return output;
  }
  // A tensor of strings, as ids.
  static Output text(Output ids) {
    ids.is_text = true;
    return ids;
  }
  static Output nothing() {
    Output output(static_cast<Instr*>(nullptr));
    output.kind = Value::Kind::nothing;
    return output;
  }
  Value::Kind kind = Value::Kind::tensor;
  Instr* instr = nullptr;
  std::optional<Literal> literal;
  Value* same = nullptr;
  bool is_text = false;
  std::vector<Output> elements;
  std::optional<Value::Pieces> pieces;  // of a sequence
};
using Outputs = std::vector<Output>;

// Values that a node takes as positions, and what it allows (onnx_index_checks.cc).
struct IndexDemand {
  Instr* indices = nullptr;  // integers
  Instr* worst = nullptr;    // what is left of them, see tensor::IndexCheck; null: not reduced yet
  std::vector<tensor::IndexRange> ranges;
  std::string node;      // as errors name it
  hlo::NodeNames names;  // as its instructions do
};

struct Options;

// Values that decide shapes, where those are computed in stages (Options::stages), or counts stay
// open (Options::max_count).
struct Decisions {
  const Options* options = nullptr;
  std::map<std::string, std::string>* calls = nullptr;  // Imported::counts
  std::set<std::string>* guessed = nullptr;             // Imported::guessed
  std::map<std::string, int64_t, std::less<>> met;      // values of each name so far
  std::deque<Value> asked;                              // by handlers

  // One that was not met before: loops and functions that are written out repeat names.
  std::string next_key(std::string_view name);
};

// A number that data decides. `computed`: s64[], where the graph is for `extent`, the most that it
// can be; null: it is `extent`.
struct Count {
  int64_t extent = 0;
  Instr* computed = nullptr;
};

struct Limits {
  int64_t value_elems = 0;  // of one computed value
  int64_t fold_elems = 0;   // of one value that is computed at import
  bool same_for_all_extents = false;
  Decisions* decisions = nullptr;  // null: neither stages nor open counts
};

class Op {
 public:
  Op(const proto::Node& node, int64_t opset, std::vector<Value*> inputs, hlo::Builder& builder,
     TensorSource& source, const Limits& limits, bool folding);

  // The same node, emitting elsewhere (into the body of a loop); it has no inputs.
  Op(const Op& other, hlo::Builder& builder)
      : Op(other.node_, other.opset_, {}, builder, other.source_, other.limits_, other.folding_) {}

  // The same node with other inputs and as an operator of another set, emitting in the same place:
  // for handlers that another one calls. It tells `other` which attributes it read, in the end.
  Op(const Op& other, int64_t opset, std::vector<Value*> inputs)
      : Op(other.node_, opset, std::move(inputs), other.b, other.source_, other.limits_,
           other.folding_) {}
  void add_reads_to(const Op& other) const { other.read_.insert(read_.begin(), read_.end()); }

  hlo::Builder& b;
  int64_t opset() const { return opset_; }
  const Limits& limits() const { return limits_; }
  const proto::Node& node() const { return node_; }

  // Inputs. `has`: given and not empty. in() and shape() fail where the input is missing.
  size_t inputs() const { return inputs_.size(); }  // trailing empty ones left out
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  Instr* in(size_t i);
  // The input as it is, also a sequence or nothing; fails where it is missing.
  Value* value(size_t i) const;
  const std::vector<Value*>& sequence(
      size_t i) const;             // fails unless it is one, element by element
  Instr* instr_of(Value& tensor);  // of an element of a sequence
  const Shape& shape(size_t i) const;
  int64_t rank(size_t i) const { return shape(i).rank(); }
  Type type(size_t i) const { return shape(i).type(); }
  // The value where it is known at import, else null.
  const Literal* known(size_t i) const;
  // Its value at each trip of the loop around, where those are known, else null.
  const std::vector<Literal>* varying(size_t i) const;
  // The same as integers (a scalar is a list of one); fails where it is not known. `what` is the
  // input's name in the ONNX specification.
  Ints known_ints(size_t i, const char* what) const;
  int64_t known_int(size_t i, const char* what) const;
  double known_float(size_t i, const char* what) const;
  const Literal& known_or_fail(size_t i, const char* what) const;
  // An extent that the node's inputs decide, from the s64[] that computes it: where it is not known
  // yet this does not return. `what`: "number of nonzero elements".
  int64_t decide(Instr* extent, const char* what) { return count(extent, -1, what).extent; }
  // The same of one that is never above `most` (-1: it has to be known; kAnyCount: there is no
  // bound, it may be guessed), which may stay open.
  static constexpr int64_t kAnyCount = INT64_MAX;
  Count count(Instr* extent, int64_t most, const char* what);
  bool may_count() const;  // else what decides has to be known
  // x, whose first dimension is of such an extent.
  Instr* first_rows(Instr* x, const Count& count);
  // Strings (tensor/vocabulary.h): whether the input is a tensor of them; those of a known value;
  // the ids of some.
  bool is_text(size_t i) const { return has(i) && inputs_[i]->text; }
  std::vector<std::string> known_texts(size_t i, const char* what) const;
  Literal text_literal(const std::vector<std::string>& texts, const Ints& extents) const;
  tensor::Vocabulary& vocabulary() const { return *source_.vocabulary; }
  // Outputs that somebody may use.
  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < outputs() && !node_.outputs[i].empty(); }

  // Attributes; fail on another type. Each read marks the attribute as understood.
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  int64_t int_attr(std::string_view name, int64_t otherwise) const;
  double float_attr(std::string_view name, double otherwise) const;
  std::string string_attr(std::string_view name, std::string_view otherwise) const;
  Ints ints_attr(std::string_view name, Ints otherwise = {}) const;
  std::vector<float> floats_attr(std::string_view name) const;
  std::vector<std::string> strings_attr(std::string_view name) const;
  const proto::Tensor* tensor_attr(std::string_view name) const;
  Literal tensor_value(const proto::Tensor& tensor, std::string_view what) const;
  void ignore(std::initializer_list<std::string_view> names) const;
  // An attribute that no handler asked for would silently change nothing: that is an error.
  void check_all_read() const;

  // Axes: negative ones count from the end.
  int64_t axis(int64_t axis, int64_t rank) const;
  int64_t axis_attr(int64_t otherwise, int64_t rank) const;
  Ints axes(const Ints& axes, int64_t rank) const;  // no duplicates; sorted

  // Fails unless the extents are a sensible value's: not negative, within limits. Returns them.
  const Ints& check_extents(const Ints& extents) const;
  void check_float(size_t i) const;

  // The elements of integer input i, or of `indices`, which the node makes of its inputs, are
  // positions: each must lie in its range (the only one, or in turn along the last dimension).
  // Fails where a known one does not; of the others a run is told.
  void demand(size_t i, std::vector<tensor::IndexRange> ranges);
  void demand(Instr* indices, std::vector<tensor::IndexRange> ranges);
  std::vector<IndexDemand> take_demands() { return std::move(demands_); }

  // For the user: what comes out is not quite what the model says.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  std::vector<std::string> take_notes() { return std::move(notes_); }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    import::fail("{}: {}", describe(), fmt::format(format, std::forward<Args>(args)...));
  }
  // Shapes do not fit together.
  template <typename... Args>
  [[noreturn]] void fail_shape(fmt::format_string<Args...> format, Args&&... args) const {
    fail_as(ErrorKind::shape, "{}: {}", describe(),
            fmt::format(format, std::forward<Args>(args)...));
  }
  // Fails because input i is not known at import.
  [[noreturn]] void fail_unknown(size_t i, const char* what) const;
  std::string describe() const;  // "node 'name' (Softmax)"
  // Fails if the builder has a deferred error.
  void check_builder() const;

 private:
  const proto::Attribute* find(std::string_view name) const;
  const proto::Attribute* find(std::string_view name, proto::AttrType type,
                               const char* wanted) const;

  const proto::Node& node_;
  int64_t opset_;
  std::vector<Value*> inputs_;
  TensorSource& source_;
  const Limits& limits_;
  std::string open_count_;  // the key of the last one
  bool folding_;
  std::vector<IndexDemand> demands_;
  std::vector<std::string> notes_;
  mutable std::set<std::string_view> read_;
  std::unordered_map<const Value*, Instr*> scratch_;  // constants of inputs while folding
};

// The constant of a known value in the builder's computation, made once; a computed value whose
// elements are all the same is a broadcast scalar. Initialisers keep their names.
Instr* materialise(hlo::Builder& b, Value& value);
// All of several elements have the same bits. False for large values, which nobody looks through.
bool is_uniform(const Literal& literal);
// "node 'name' (Add)", or by place and first output where it has no name.
std::string describe(const proto::Node& node);
// Domains "" and "ai.onnx" are one.
std::string_view normal_domain(std::string_view domain);

}  // namespace heddle::import
