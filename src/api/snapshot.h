// The values in an HLO snapshot: its arguments are the inputs if none are given, and its result is
// the reference for check.
#pragma once

#include <string>

#include "tensor/npz.h"

namespace heddle::api {

struct Snapshot {
  tensor::NamedLiterals arguments, results;  // arg0, arg1.0, …; out0, …
  bool used = false;                         // its arguments were used as inputs
};

// If nothing is given and the file is a snapshot, `given` becomes its arguments. Other files: no
// effect. Errors (user): a damaged snapshot.
Result<Snapshot> use_snapshot(const std::string& path, tensor::NamedLiterals& given);

}  // namespace heddle::api
