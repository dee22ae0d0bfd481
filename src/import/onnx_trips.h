// Private to import: what the body of a loop makes of pieces of arrays, told for all trips at once.
// A value of it is a piece of some array, repeated as often as a piece of an array of integers says
// (that extent is no number), or it is a list of such extents: shape arithmetic. onnx_ragged.cc
// makes one array of what such a loop appends.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "import/onnx_op.h"

namespace heddle::import {

// A number, or what a trip reads of a sequence of integers (its pieces have one element each).
struct TripExtent {
  int64_t number = 1;
  const Value* count = nullptr;
  bool operator==(const TripExtent&) const = default;
};
using TripExtents = std::vector<TripExtent>;

// A value of the body that is another one in each trip.
struct TripValue {
  enum class Kind { trip, carried, integers, rows } kind = Kind::trip;
  size_t carried = 0;               // kind carried: which of the loop's
  bool is_appended_to = false;      // by `sequence` and `extents`
  bool is_scalar = false;           // integers: else a list
  const Value* sequence = nullptr;  // rows: of its piece, in order, each as often as ...
  TripExtents extents;              // ... the extent says that is a count. Of integers: these
};

// The nodes of a body that read such values.
class TripWalk {
 public:
  using Find = std::function<const Value*(std::string_view)>;
  // `trips`: how many there are; `find`: the values that are the same in all trips.
  TripWalk(int64_t trips, Find find) : trips_(trips), find_(std::move(find)) {}

  void define(std::string_view name, TripValue value) { values_[name] = std::move(value); }
  const TripValue* find(std::string_view name) const;
  bool reads(const proto::Node& node) const;
  // Its output, one of those or a known value. Nothing: it is none of what can be told.
  struct Made {
    std::optional<TripValue> value;
    std::optional<Literal> literal;
  };
  std::optional<Made> walk(const proto::Node& node) const;

 private:
  struct Numbers {
    bool is_scalar = false;
    TripExtents extents;
  };
  std::optional<Numbers> numbers(std::string_view name) const;
  std::optional<hlo::Ints> known(std::string_view name) const;
  const Literal* literal(std::string_view name) const;

  std::optional<Made> at(const proto::Node& node) const;
  std::optional<Made> insert(const proto::Node& node) const;
  std::optional<Made> unsqueeze(const proto::Node& node) const;
  std::optional<Made> shape(const proto::Node& node) const;
  std::optional<Made> concat(const proto::Node& node) const;
  std::optional<Made> equal(const proto::Node& node) const;
  std::optional<Made> where(const proto::Node& node) const;
  std::optional<Made> expand(const proto::Node& node) const;
  std::optional<Made> reshape(const proto::Node& node) const;
  std::optional<Made> same(const proto::Node& node) const;

  int64_t trips_;
  Find find_;
  std::map<std::string_view, TripValue> values_;
};

}  // namespace heddle::import
