// Private to api: models that are another text for other extents, as frameworks have them that
// trace programs: HLO or StableHLO of static shapes, written when it is asked for. Dimensions of
// their inputs have names; so they open as ONNX models with dynamic dimensions do, with bounds or
// with shapes that are known late.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/counts.h"
#include "api/session.h"

namespace heddle::api {

struct Family {
  struct Dim {
    std::string input;  // arg<n>
    int64_t dimension = 0;
    std::string name;
  };
  std::string name;  // for messages
  // By the dimensions' names. Called by one thread at a time.
  std::function<Result<std::string>(const std::map<std::string, int64_t>&)> text_at;
  std::vector<Dim> dims;
};

// Errors: a dimension of which no extent is known or several are, those of text_at and of the
// text's import, an input whose shape is another one than that which was asked for (unless
// extents of dimensions are).
Import family_import(Family family);

}  // namespace heddle::api
