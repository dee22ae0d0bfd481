// The values that an HLO snapshot brings: its arguments are the inputs where none are given, its
// result is what check compares with.
#pragma once

#include <string>

#include "tensor/npz.h"

namespace heddle::api {

struct Snapshot {
  tensor::NamedLiterals arguments, results;  // arg0, arg1.0, …; out0, …
  bool used = false;                         // the inputs are its arguments
};

// Where nothing is given and the file is a snapshot, `given` becomes its arguments. Other files:
// nothing. Errors (user): a damaged one.
Result<Snapshot> use_snapshot(const std::string& path, tensor::NamedLiterals& given);

}  // namespace heddle::api
