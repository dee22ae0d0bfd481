#include "program/side_by_side.h"

#include <map>

#include "program/ranges.h"
#include "program/views.h"

namespace heddle::program {

namespace {

constexpr size_t kMostCommands = 1024, kMostRanges = 256;  // in one launch; per memory in it

class Neighbours {
 public:
  explicit Neighbours(const Program& program) : program_(program) {}

  // Adds the command to the group if there is no conflict.
  bool add(const Command& command) {
    const auto* launch = std::get_if<Launch>(&command);
    if (!launch || program_.kernels[launch->kernel.index()].phases.size() != 1) return false;
    std::vector<Range> mine;
    bool fits = count_ < kMostCommands;
    for_each_view(command, [&](const View& view, Use use) {
      const Range range{range_of(program_, view), use != Use::read};
      if (range.bytes.memory.first == BufferKind::constant) return;
      const std::vector<Range>& others = ranges_[range.bytes.memory];
      fits = fits && others.size() < kMostRanges;
      for (const Range& other : others)
        fits = fits && !((range.writes || other.writes) && range.bytes.overlaps(other.bytes));
      mine.push_back(range);
    });
    if (!fits) return false;
    for (const Range& range : mine) ranges_[range.bytes.memory].push_back(range);
    ++count_;
    return true;
  }

  void clear() {
    ranges_.clear();
    count_ = 0;
  }

 private:
  struct Range {
    ByteRange bytes;
    bool writes;
  };

  const Program& program_;
  std::map<Memory, std::vector<Range>> ranges_;
  size_t count_ = 0;
};

int64_t launches_of(const Program& program, const std::vector<Command>& commands) {
  int64_t launches = 0;
  const std::vector<size_t> groups = side_by_side(program, commands);
  for (size_t i = 0; i < commands.size(); ++i) {
    if (groups[i] == 0) continue;
    const auto* launch = std::get_if<Launch>(&commands[i]);
    launches += launch ? static_cast<int64_t>(program.kernels[launch->kernel.index()].phases.size())
                       : regions_of(commands[i]).empty();
    for (const RegionId region : regions_of(commands[i]))
      launches += launches_of(program, program.regions[region.index()].commands);
  }
  return launches;
}

int64_t joined_of(const Program& program, const std::vector<Command>& commands) {
  int64_t joined = 0;
  for (const size_t group : side_by_side(program, commands)) joined += group == 0;
  for (const Command& command : commands)
    for (const RegionId region : regions_of(command))
      joined += joined_of(program, program.regions[region.index()].commands);
  return joined;
}

}  // namespace

int64_t joined_count(const Program& program) { return joined_of(program, program.commands); }

std::vector<size_t> side_by_side(const Program& program, const std::vector<Command>& commands) {
  std::vector<size_t> result(commands.size(), 0);
  Neighbours neighbours(program);
  for (size_t first = 0; first < commands.size();) {
    neighbours.clear();
    size_t end = first;
    while (end < commands.size() && neighbours.add(commands[end])) ++end;
    end = std::max(end, first + 1);
    result[first] = end - first;
    first = end;
  }
  return result;
}

int64_t launch_count(const Program& program) { return launches_of(program, program.commands); }

}  // namespace heddle::program
