// Private to api: counts that data decides (NonZero, NonMaxSuppression) and that have a bound. The
// graph is made for the bound; how much is there is a value of the graph itself
// (heddle.first_rows in hlo/symbol.h), and masks make it right for every count
// (opt/mask_padding). So neither a stage nor another program is needed for another count.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "import/onnx.h"

namespace heddle::api {

using Import = std::function<Result<import::Imported>(const import::Options&)>;

// What outputs of a program say of its counts: how long others are, and whether a guess was right.
struct CountOutputs {
  std::vector<import::OpenOutput> open;
  std::vector<import::GuessedCount> guessed;
  std::vector<std::vector<int64_t>> needed;  // sets of outputs that must not all be 0
  bool empty() const { return open.empty() && guessed.empty() && needed.empty(); }
};
CountOutputs count_outputs(const import::Imported& imported);

// An import whose counts are open where that is possible. Those that reach an operator that needs
// exact extents, or a constant, are decided as import::Options says; so are those that reach a
// result, unless Options::stages lets shapes of results be known late (Imported::open_outputs).
// Copies share what is known of the model. Thread safety: may be called by several at once.
class CountingImport {
 public:
  explicit CountingImport(Import import) : import_(std::move(import)) {}
  // Errors: those of the import.
  Result<import::Imported> operator()(import::Options options) const;

 private:
  Result<import::Imported> beside_bounds(import::Options options) const;

  struct Known {
    std::mutex mutex;
    bool follow = false;  // beside bounded dimensions: nothing else depends on the counts
    std::map<std::string, std::string> exact;  // keys of counts that cannot be open: why
  };
  Import import_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

}  // namespace heddle::api
