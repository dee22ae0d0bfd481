// A calibration set: values for a model's inputs, one sample after another.
#pragma once

#include <string>
#include <vector>

#include "tensor/npz.h"

namespace heddle::tools {

class Samples {
 public:
  // A folder of npz files, one a sample, in the order of their names; or one npz file, whose arrays
  // are cut along their first dimension where that is a multiple of the input's. Nothing named:
  // `random` samples without values. Errors (user): nothing there; a name that is no input; another
  // shape.
  static Result<Samples> open(
      const std::string& path, int64_t random,
      const std::vector<std::pair<std::string, std::vector<int64_t>>>& inputs);

  int64_t count() const { return count_; }
  // Changes when a file is another one or was written again; the same for all random samples.
  const std::string& identity() const { return identity_; }
  bool is_random() const { return files_.empty() && whole_.empty(); }
  Result<tensor::NamedLiterals> read(int64_t number) const;  // random: none

 private:
  std::vector<std::string> files_;  // of a folder
  tensor::NamedLiterals whole_;     // of one file
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputs_;
  int64_t count_ = 0;
  std::string identity_;
};

}  // namespace heddle::tools
