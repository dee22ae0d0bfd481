#include "hlo/loop_trips.h"

#include <algorithm>
#include <charconv>

namespace heddle::hlo {

namespace {
constexpr std::string_view kTrips = "heddle_trips", kStrips = "heddle_strips",
                           kUnread = "heddle_unread";

bool has(const Instr* instr, std::string_view key) {
  return std::any_of(instr->annotations().begin(), instr->annotations().end(),
                     [&](const auto& one) { return one.first == key; });
}
}  // namespace

std::optional<int64_t> known_trips(const Instr* loop) {
  for (const auto& [key, text] : loop->annotations()) {
    if (key != kTrips) continue;
    int64_t trips = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), trips);
    if (error == std::errc() && end == text.data() + text.size() && trips >= 0) return trips;
  }
  return {};
}

void set_trips(Instr* loop, int64_t trips) {
  std::erase_if(loop->annotations(), [](const auto& one) { return one.first == kTrips; });
  loop->annotations().emplace_back(kTrips, std::to_string(trips));
}

bool is_strips(const Instr* loop) { return has(loop, kStrips); }
void set_strips(Instr* loop) { loop->annotations().emplace_back(kStrips, "true"); }

const Instr* loop_of_steps(const Instr* loop) {
  if (!is_strips(loop)) return loop;
  const std::vector<Instr*>& inside = loop->called()[1]->instrs();
  return *std::find_if(inside.begin(), inside.end(),
                       [](const Instr* instr) { return instr->is(Opcode::while_); });
}

bool is_unread(const Instr* value) { return has(value, kUnread); }
void set_unread(Instr* value) { value->annotations().emplace_back(kUnread, "true"); }

bool is_loop_fusion(const Computation& computation) {
  return std::any_of(computation.instrs().begin(), computation.instrs().end(),
                     [](const Instr* instr) { return instr->is(Opcode::while_); });
}

bool goes_round(const Instr* loop, int64_t leaf) {
  const Computation& body = *loop->called()[1];
  const Instr* next = body.root()->operand(static_cast<size_t>(leaf));
  return next->is(Opcode::get_tuple_element) && next->operand(0) == body.parameters()[0] &&
         next->tuple_index() == leaf;
}

}  // namespace heddle::hlo
