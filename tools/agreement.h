// How near the outputs of one program are to those of another, over many runs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tensor/literal.h"

namespace heddle::tools {

class Agreement {
 public:
  // The outputs of one run of each, in the same order. Only floats count.
  void add(const std::vector<tensor::Literal>& got, const std::vector<tensor::Literal>& want);

  double cosine() const;  // the least of all outputs; 1 where there are none
  double sqnr() const;    // dB, likewise
  // The share of rows [rows, classes] of the outputs of rank 2 whose largest element is the same one;
  // negative: there is no such output.
  double top1() const;

 private:
  struct Sums {
    double product = 0, got = 0, want = 0, noise = 0;
    bool is_float = false;
  };
  std::vector<Sums> sums_;
  int64_t rows_ = 0, same_ = 0;
};

std::string to_string(const Agreement& agreement);
nlohmann::ordered_json to_json(const Agreement& agreement);

}  // namespace heddle::tools
