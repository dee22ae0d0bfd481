#include "quantize_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::tools {

using tensor::Literal;

namespace {

constexpr int kMostReverts = 8;

Result<Found> checked(const Search& how, import::OnnxEdit* model) {
  Found found;
  HEDDLE_ASSIGN_OR_RETURN(found.stored, how.rewrite(model));
  HEDDLE_ASSIGN_OR_RETURN(const EditedModel program, how.runs.compile(*model));
  found.bytes = program.bytes;
  for (int64_t s = 0; s < how.runs.held_out(); ++s) {
    if (Interrupt::asked()) return cancelled_error("stopped while checking");
    how.progress->show(fmt::format("{} checking", Progress::bar(s, how.runs.held_out())));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> results,
                            how.runs.run(program, how.runs.first_held_out() + s));
    found.agreement.add(results, how.expected[static_cast<size_t>(s)]);
  }
  found.near = found.agreement.cosine() >= how.least_cosine;
  return found;
}

// False: none would be left.
bool revert_worst(const Search& how, const Found& found, std::vector<bool>* chosen) {
  const auto worth = [&](size_t i) { return std::min(found.stored[i].sqnr, how.input_sqnr(i)); };
  std::vector<size_t> left;
  for (size_t i = 0; i < chosen->size(); ++i)
    if ((*chosen)[i]) left.push_back(i);
  std::sort(left.begin(), left.end(), [&](size_t a, size_t b) { return worth(a) < worth(b); });
  const size_t some = std::max<size_t>(1, chosen->size() / 16);
  for (size_t n = 0; n < std::min(some, left.size()); ++n) (*chosen)[left[n]] = false;
  return left.size() > some;
}

}  // namespace

Result<Found> search(const Search& how, import::OnnxEdit* model, std::vector<bool>* chosen) {
  const std::vector<bool> all = *chosen;
  HEDDLE_ASSIGN_OR_RETURN(Found first, checked(how, model));
  Found found = first;
  for (int attempt = 0; !found.near; ++attempt) {
    if (attempt < kMostReverts && revert_worst(how, found, chosen)) {
      HEDDLE_ASSIGN_OR_RETURN(found, checked(how, model));
      continue;
    }
    first.notes.push_back(fmt::format(
        "with {} layers less the outputs would be no nearer than cosine {:.5f}: all are quantised",
        std::count(chosen->begin(), chosen->end(), false), found.agreement.cosine()));
    *chosen = all;
    HEDDLE_ASSIGN_OR_RETURN(first.stored, how.rewrite(model));
    return first;
  }
  return found;
}

}  // namespace heddle::tools
