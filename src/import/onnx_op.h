// Op: a handler's view of one node. A handler is a small function that reads inputs and attributes
// and returns the node's outputs; the table {operator, handler} is onnx_ops.h.
//
// Handlers run in one of two modes without noticing which: into the entry computation, or, if all
// inputs are small and known, into a scratch computation that is evaluated at once and discarded
// (fold.h). Errors are thrown (failure.h), prefixed by the node's name.
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
#include "import/bounded_places.h"
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
// arithmetic), or both, once a known one has been used. A sequence: its elements, whose number is
// always known, or, if it is ragged, arrays that describe all of them. Nothing: an optional without
// a value.
struct Value {
  enum class Kind { tensor, sequence, nothing };
  // A sequence whose elements are the slices of an array along an axis, in order.
  struct Pieces {
    Value* array = nullptr;
    int64_t axis = 0;
  };
  // A sequence described by two arrays, `elements`: element i is slice i of the first one along
  // `axis`, repeated as often as element i of the second one (integers) says. The number of
  // repetitions is dimension `dim` of `extents`, which is 0 there.
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
  // A known value that depends on extents that differ from run to run: what it would be if no
  // counted rows were there, if one was, for other extents of bounded dimensions, and with a name
  // in place of each count and of each size (onnx_extents.cc). Else empty.
  std::vector<Literal> elsewhere;
  // Calls of heddle.first_rows on whose counts it depends, those of one dimension together.
  std::set<std::set<const Instr*>> rows;
  // Inside a loop with a known trip count: the value at each trip, if small and known.
  std::shared_ptr<const std::vector<Literal>> trips;
  std::string_view name;
  std::string key;  // in Options::decided; empty: not a computed tensor, or without a name there
  // Names of the nodes that computed it at import; its readers take them over.
  hlo::NodeNames nodes;
  bool is_initialiser = false;
  bool text = false;  // a tensor of strings: ids (tensor/vocabulary.h)
  bool is_tensor() const { return kind == Kind::tensor; }
  const Shape& shape() const { return literal ? literal->shape() : instr->shape(); }
};

// A result of a handler, one per output.
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
  std::vector<Literal> elsewhere;  // as in Value
  std::set<std::set<const Instr*>> rows;
  Value* same = nullptr;
  bool is_text = false;
  std::vector<Output> elements;
  std::optional<Value::Pieces> pieces;  // of a sequence
};
using Outputs = std::vector<Output>;

// Values that a node uses as positions, and their ranges (onnx_index_checks.cc).
struct IndexDemand {
  Instr* indices = nullptr;  // integers
  Instr* worst = nullptr;    // reduced, see tensor::IndexCheck; null: not reduced yet
  std::vector<tensor::IndexRange> ranges;
  std::string node;      // as in error messages
  hlo::NodeNames names;  // as on its instructions
};

struct Imported;
struct Options;

// Values that determine shapes, if those are computed in stages (Options::stages) or counts stay
// open (Options::max_count).
struct Decisions {
  const Options* options = nullptr;
  std::map<std::string, std::string>* calls = nullptr;  // Imported::counts
  std::set<std::string>* guessed = nullptr;             // Imported::guessed
  std::map<std::string, int64_t, std::less<>> met;      // number of uses of each name so far
  std::deque<Value> asked;                              // requested by handlers
  std::vector<Instr*> counted;  // calls of heddle.first_rows that have names
  // Equal counts are one value: of rows of a call, but so many at most.
  std::map<std::pair<const Instr*, int64_t>, Instr*> counts;
  std::map<const Instr*, std::vector<Instr*>> nonzero;  // positions in an array, by dimension

  // Returns a unique key: unrolled loops and inlined functions repeat names.
  std::string next_key(std::string_view name);
};

// A data-dependent count. `computed`: s64[] with the actual count, if the graph is built for the
// maximum `extent`; null: the count is `extent`.
struct Count {
  int64_t extent = 0;
  Instr* computed = nullptr;
};

// Extents that the graph computes from others (Options::named_extents).
struct NamedExtents {
  const Options* options = nullptr;
  Imported* result = nullptr;
  hlo::Computation* entry = nullptr;
  std::vector<std::pair<std::string, Instr*>> found;     // what computes it, s64[]
  std::map<std::string, std::vector<std::string>> dims;  // of their inputs
};

struct Limits {
  int64_t value_elems = 0;  // of one computed value
  int64_t fold_elems = 0;   // of one value computed at import
  bool same_for_all_extents = false;
  mutable BoundedPlaces bounded;
  mutable std::vector<Place> sized;  // dimensions whose extents have names (Value::elsewhere)
  NamedExtents* named = nullptr;     // null: no extent has a name
  Decisions* decisions = nullptr;    // null: no stages and no open counts
};

class Op {
 public:
  Op(const proto::Node& node, int64_t opset, std::vector<Value*> inputs, hlo::Builder& builder,
     TensorSource& source, const Limits& limits, bool folding);

  // The same node, emitting elsewhere (into the body of a loop); without inputs.
  Op(const Op& other, hlo::Builder& builder)
      : Op(other.node_, other.opset_, {}, builder, other.source_, other.limits_, other.folding_) {}

  // The same node with other inputs and as an operator of another opset, emitting in the same
  // place: for handlers called by another one. At the end `add_reads_to` tells `other` which
  // attributes it read.
  Op(const Op& other, int64_t opset, std::vector<Value*> inputs)
      : Op(other.node_, opset, std::move(inputs), other.b, other.source_, other.limits_,
           other.folding_) {}
  void add_reads_to(const Op& other) const { other.read_.insert(read_.begin(), read_.end()); }

  hlo::Builder& b;
  int64_t opset() const { return opset_; }
  const Limits& limits() const { return limits_; }
  // Whether all of x is a slice nevertheless: of a table, which is longer than an extent may be.
  bool stays_slice(const Instr* x) const;
  const proto::Node& node() const { return node_; }

  // Inputs. `has`: given and not empty. in() and shape() fail if the input is missing.
  size_t inputs() const { return inputs_.size(); }  // trailing empty ones left out
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  Instr* in(size_t i);
  // The input as such, including a sequence or nothing; fails if it is missing.
  Value* value(size_t i) const;
  // Fails unless it is a sequence held element by element.
  const std::vector<Value*>& sequence(size_t i) const;
  Instr* instr_of(Value& tensor);  // for an element of a sequence
  const Shape& shape(size_t i) const;
  int64_t rank(size_t i) const { return shape(i).rank(); }
  Type type(size_t i) const { return shape(i).type(); }
  // The value if it is known at import, else null.
  const Literal* known(size_t i) const;
  // Its value at each trip of the enclosing loop, if known, else null.
  const std::vector<Literal>* varying(size_t i) const;
  // The same as integers (a scalar is a list of one); fails if it is not known. `what` is the
  // input's name in the ONNX specification.
  Ints known_ints(size_t i, const char* what) const;
  int64_t known_int(size_t i, const char* what) const;
  double known_float(size_t i, const char* what) const;
  const Literal& known_or_fail(size_t i, const char* what) const;
  // An extent determined by the node's inputs, from the s64[] that computes it: throws if it is not
  // known yet. `what`: "number of nonzero elements".
  int64_t decide(Instr* extent, const char* what) { return count(extent, -1, what).extent; }
  // The same for a count of at most `most` (-1: it must be known; kAnyCount: no bound, it may be
  // guessed), which may stay open.
  static constexpr int64_t kAnyCount = INT64_MAX;
  Count count(Instr* extent, int64_t most, const char* what);
  bool may_count() const;  // else the values that determine it must be known
  // x, whose first dimension has that count.
  Instr* first_rows(Instr* x, const Count& count);
  // The first elements of x along a dimension; where that follows a count, as many as are there.
  Instr* first_part(Instr* x, int64_t dimension, int64_t elems);
  // x, of which as many elements are there along each dimension as input i, known extents, says.
  Instr* as_many_as(Instr* x, size_t i);
  // Element k of the known input i as the graph computes it, s64[], where there are extents with
  // names and it differs with those of inputs; null: it does not.
  Instr* open_extent(size_t i, int64_t k);
  Instr* open_product(size_t i, int64_t k);  // null, too, where no dimensions are multiplied
  // x, of whose dimension so many are there; null: all.
  Instr* open_rows(Instr* x, int64_t dimension, Instr* extent);
  // x, with as many rows as a dimension has, if the known input i is what the graph computes of its
  // extent alone.
  Instr* rows_like(Instr* x, size_t i);
  // `size` elements of x along a dimension, from `start` (s64[]) on, of which so many are there.
  // They are looked up: a slice that takes all at some extents would be something else there.
  Instr* open_part(Instr* x, int64_t dimension, Instr* start, int64_t size, Instr* extent);
  // The extents of input i, from dimension `start` to `end`, as a known value: those of the bounds.
  Output known_extents(size_t i, int64_t start, int64_t end);
  // Whether there may be less of a dimension of x than it says, as it follows a count.
  bool is_counted(const Instr* x, int64_t dimension) const;
  // Whether a dimension of x, or an element of the known input i, follows a bounded dimension.
  bool is_bounded(const Instr* x, int64_t dimension) const {
    return limits_.bounded.behind(x, dimension) != nullptr;
  }
  bool is_bounded(size_t i, int64_t element) const;
  // Whether an element of the known input i is the same multiple of a bounded dimension of x for
  // all extents.
  bool is_multiple(size_t i, int64_t element, const Instr* x, int64_t dimension) const;
  // The bounded dimension whose extent an element of the known input i is; nothing: it is another
  // number.
  std::optional<Place> dimension_of(size_t i, int64_t element) const;
  // Positions along a dimension, and along one of which nothing else is known yet: s32[n].
  Instr* positions_along(const Place& place);
  Instr* positions_up_to(int64_t extent);
  // Element k of the known input i as the graph computes it from extents of bounded dimensions,
  // s64[]; null: it does not, or the element is the same for all of them.
  Instr* computed_extent(size_t i, int64_t k);
  // The extents of x, from dimension `start` to `end`, as the graph has them, s64[]; null: none has
  // a name, so that nobody asks.
  Instr* computed_extents(Instr* x, int64_t start, int64_t end);
  // Whether such an extent differs from run to run: positions may then be any at import.
  bool is_computed(const Instr* x, int64_t dimension) const {
    return limits_.named != nullptr && is_bounded(x, dimension);
  }
  // Positions along a dimension of the first result, of which the extent is computed, but `extent`
  // here: s32[n]. Null: it has no name, and is `extent`.
  Instr* named_positions(int64_t dimension, int64_t extent, Instr* computed);
  // Strings (tensor/vocabulary.h): whether the input is a tensor of strings; the strings of a known
  // value; the ids of given strings.
  bool is_text(size_t i) const { return has(i) && inputs_[i]->text; }
  std::vector<std::string> known_texts(size_t i, const char* what) const;
  Literal text_literal(const std::vector<std::string>& texts, const Ints& extents) const;
  tensor::Vocabulary& vocabulary() const { return *source_.vocabulary; }
  // Outputs that may be used.
  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < outputs() && !node_.outputs[i].empty(); }

  // Attributes; fail if the type differs. Each read marks the attribute as understood.
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
  // An error if an attribute was not read: it would be ignored silently.
  void check_all_read() const;

  // Axes: negative ones count from the end.
  int64_t axis(int64_t axis, int64_t rank) const;
  int64_t axis_attr(int64_t otherwise, int64_t rank) const;
  Ints axes(const Ints& axes, int64_t rank) const;  // no duplicates; sorted

  // Fails unless the extents are valid: not negative, within limits. Returns them.
  const Ints& check_extents(const Ints& extents) const;
  void check_float(size_t i) const;

  // The elements of integer input i, or of `indices` (computed from the node's inputs), are
  // positions: each must be in its range (the only one, or the ranges in turn along the last
  // dimension). Fails if a known one is not; the others are checked at run time.
  void demand(size_t i, std::vector<tensor::IndexRange> ranges);
  void demand(Instr* indices, std::vector<tensor::IndexRange> ranges);
  std::vector<IndexDemand> take_demands() { return std::move(demands_); }

  // For the user: the result differs slightly from the model's definition.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  std::vector<std::string> take_notes() { return std::move(notes_); }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    import::fail("{}: {}", describe(), fmt::format(format, std::forward<Args>(args)...));
  }
  // For shapes that do not fit together.
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
  int64_t size_name(const Instr* x, int64_t dimension) const;
  const proto::Attribute* find(std::string_view name) const;
  const proto::Attribute* find(std::string_view name, proto::AttrType type,
                               const char* wanted) const;

  // The dimension of an input, at a bound, that it follows, or null.
  // x, of whose rows there are as many as of those of a call.
  Instr* count_rows(Instr* x, const Instr* call);

  const proto::Node& node_;
  int64_t opset_;
  std::vector<Value*> inputs_;
  TensorSource& source_;
  const Limits& limits_;
  std::string open_count_;  // the key of the last count
  bool folding_;
  std::vector<IndexDemand> demands_;
  std::vector<std::string> notes_;
  mutable std::set<std::string_view> read_;
  std::unordered_map<const Value*, Instr*> scratch_;  // constants of inputs while folding
};

// The constant for a known value in the builder's computation, made once; a computed value whose
// elements are all equal is a broadcast scalar. Initialisers keep their names.
Instr* materialise(hlo::Builder& b, Value& value);
// A few integers that depend on extents of bounded dimensions, each a constant of its own, which
// grows with the extent; null: others.
Instr* element_by_element(hlo::Builder& b, const Value& value);
// Whether there are several elements, all with the same bits. False for large values, which are not
// scanned.
bool is_uniform(const Literal& literal);
// "node 'name' (Add)", or by number and first output if it has no name.
std::string describe(const proto::Node& node);
// Maps "ai.onnx" to "", which is the same domain.
std::string_view normal_domain(std::string_view domain);

}  // namespace heddle::import
