// One output of a compiled program against what it should be, for check and conform.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/second_reference.h"
#include "tensor/compare.h"

namespace heddle::tools {

struct OutputCheck {
  std::string name, shape;
  std::string wanted_shape;  // where it has another one, as of counts that values decide; else empty
  tensor::Tolerance tolerance;
  tensor::Comparison comparison;
  std::vector<int64_t> worst_at;  // multi-index of the worst element
  // The measure that `tolerance` was widened by, and what it was before.
  std::optional<api::Measure> widened_by;
  tensor::Tolerance derived;
  // Of floats: the cosine of the angle between both, and what it must reach where that decides and
  // the tolerance does not.
  double cosine = 1;
  std::optional<double> least_cosine;
  bool equal() const {
    if (!wanted_shape.empty()) return false;
    return least_cosine ? cosine >= *least_cosine : comparison.equal;
  }
  // max|a - b| / max|b|; 0 where nothing differs.
  double relative_error() const;
};

OutputCheck check_output(const std::string& name, const tensor::Literal& got,
                         const tensor::Literal& want, const tensor::Tolerance& tolerance);
// A check that found a difference again, with tolerances that are measured: until one finds none.
Result<OutputCheck> recheck(const OutputCheck& failed, size_t number, const tensor::Literal& got,
                            const tensor::Literal& want, api::SecondReference& reference);
std::string to_string(const OutputCheck& check);  // one line
nlohmann::ordered_json to_json(const OutputCheck& check);

}  // namespace heddle::tools
