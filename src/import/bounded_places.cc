#include "import/bounded_places.h"

#include <algorithm>

#include "hlo/dim_classes.h"
#include "hlo/index_map.h"
#include "hlo/symbol.h"

namespace heddle::import {

namespace {

using hlo::DimKind;
using hlo::DimLink;
using tensor::Extent;

// From a dimension to one that follows it.
struct Step {
  std::optional<hlo::WindowDim> window;
  int64_t times = 1;
};

}  // namespace

using hlo::Instr;
using hlo::Opcode;

std::vector<Place> dimensions_behind(const Place& place) {
  const auto& [instr, dimension] = place;
  if (const auto like = hlo::is_first_rows(*instr) ? hlo::counted_like(*instr) : std::nullopt;
      like && dimension == 0)
    return {*like};
  if (hlo::is_first_rows(*instr) || instr->is(Opcode::scatter))
    return {{instr->operand(0), dimension}};
  if (instr->is(Opcode::get_tuple_element)) {
    const Instr* tuple = instr->operand(0);
    return tuple->is(Opcode::sort) ? std::vector<Place>{{tuple->operand(0), dimension}}
                                   : std::vector<Place>();
  }
  std::vector<Place> result;
  for (size_t k = 0; k < instr->operands().size(); ++k) {
    const hlo::IndexMap map = hlo::index_map(*instr, k);
    const hlo::DimLink* link = map.is_opaque ? nullptr : map.of_result(dimension);
    if (link != nullptr) result.emplace_back(instr->operand(k), link->from);
  }
  return result;
}

int64_t unit_of(int64_t extent, int64_t bound) {
  return bound > 0 && extent % bound == 0 ? std::max<int64_t>(extent / bound, 1) : 1;
}

void BoundedPlaces::emplace(const Instr* instr, int64_t dimension, int64_t unit) {
  const Place place(instr, dimension);
  if (known_.contains(place)) known_.clear();
  places_.emplace(place, unit);
}

const Place* BoundedPlaces::behind(const Instr* instr, int64_t dimension) const {
  if (places_.empty()) return nullptr;
  // Others are freed while the model is read: values that are computed at import.
  const bool lasts = instr->parent() == instr->parent()->module()->entry();
  std::map<Place, Nearest> of_others;
  std::map<Place, Nearest>& known = lasts ? known_ : of_others;
  const Place wanted(instr, dimension);
  std::vector<Place> open{wanted};
  while (!open.empty()) {
    const Place at = open.back();
    if (known.contains(at)) {
      open.pop_back();
      continue;
    }
    Nearest nearest;
    bool all_known = true;
    if (const auto own = places_.find(at); own != places_.end()) {
      nearest.place = &own->first;
    } else {
      for (const Place& behind : dimensions_behind(at)) {
        const auto found = known.find(behind);
        if (found == known.end()) {
          open.push_back(behind);
          all_known = false;
        } else if (found->second.place != nullptr &&
                   (nearest.place == nullptr || found->second.steps + 1 < nearest.steps)) {
          nearest = {found->second.place, found->second.steps + 1};
        }
      }
    }
    if (!all_known) continue;
    known[at] = nearest;
    open.pop_back();
  }
  return known.at(wanted).place;
}

std::optional<Extent> BoundedPlaces::extent(const Instr* instr, int64_t dimension) const {
  std::vector<Step> steps;  // last one first
  Place at(instr, dimension);
  while (!places_.contains(at)) {
    std::optional<Place> next;
    Step step;
    const std::vector<Place> behind = dimensions_behind(at);
    for (size_t k = 0; k < at.first->operands().size() && !next; ++k) {
      const Instr* operand = at.first->operand(k);
      const hlo::IndexMap map = hlo::index_map(*at.first, k);
      const DimLink* link = map.is_opaque ? nullptr : map.of_result(at.second);
      if (link == nullptr || this->behind(operand, link->from) == nullptr) continue;
      next = Place(operand, link->from);
      if (link->kind == DimKind::window) {
        step.window = link->window;
      } else if (link->kind == DimKind::regrouped) {
        for (int64_t d = link->from + 1; d < link->from_end; ++d)
          if (this->behind(operand, d) != nullptr) return std::nullopt;
        const int64_t whole = at.first->shape().dim(at.second),
                      part = operand->shape().dim(next->second);
        if (part < 1 || whole % part != 0) return std::nullopt;
        step.times = whole / part;
      } else if (link->kind != DimKind::same) {
        return std::nullopt;
      }
    }
    if (!next && behind.size() == 1 && this->behind(behind[0].first, behind[0].second) != nullptr)
      next = behind[0];
    if (!next) return std::nullopt;
    steps.push_back(step);
    at = *next;
  }
  const auto root = places_.find(at);
  Extent result = Extent::of_symbol(std::distance(places_.begin(), root)).times(root->second);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->window) {
      std::optional<Extent> windows = hlo::windows_over(result, *step->window);
      if (!windows) return std::nullopt;
      result = *windows;
    }
    result = result.times(step->times);
  }
  return result;
}

std::optional<int64_t> BoundedPlaces::extent_at(
    const Instr* instr, int64_t dimension, const std::function<int64_t(const Place&)>& root) const {
  const std::optional<Extent> found = extent(instr, dimension);
  if (!found) return std::nullopt;
  const std::vector<int64_t> used = found->symbols();
  std::vector<int64_t> units;
  for (const auto& [place, unit] : places_) {
    const bool is_used = std::ranges::binary_search(used, std::ssize(units));
    const int64_t elements = is_used ? root(place) : 0;
    if (elements % unit != 0) return std::nullopt;
    units.push_back(elements / unit);
  }
  return found->at(units);
}

}  // namespace heddle::import
