#include "import/bounded_places.h"

#include "hlo/index_map.h"
#include "hlo/symbol.h"

namespace heddle::import {

using hlo::Instr;
using hlo::Opcode;

std::vector<Place> dimensions_behind(const Place& place) {
  const auto& [instr, dimension] = place;
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

void BoundedPlaces::emplace(const Instr* instr, int64_t dimension) {
  const Place place(instr, dimension);
  if (known_.contains(place)) known_.clear();
  places_.insert(place);
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
      nearest.place = &*own;
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

}  // namespace heddle::import
