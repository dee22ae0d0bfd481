#include "kernel/interp_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernel/blocks.h"
#include "kernel/scalar.h"

namespace heddle::kernel {
namespace {

uint64_t read_bits(const char* p, Type type, int size) {
  uint64_t bits = 0;
  switch (size) {
    case 1: {
      uint8_t b;
      std::memcpy(&b, p, 1);
      if (type == Type::pred) return b != 0;
      bits = type == Type::s8 ? static_cast<uint64_t>(int64_t{static_cast<int8_t>(b)}) : b;
      break;
    }
    case 2: {
      uint16_t h;
      std::memcpy(&h, p, 2);
      bits = type == Type::s16 ? static_cast<uint64_t>(int64_t{static_cast<int16_t>(h)}) : h;
      break;
    }
    case 4: {
      uint32_t w;
      std::memcpy(&w, p, 4);
      bits = type == Type::s32 ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(w)}) : w;
      break;
    }
    default:
      std::memcpy(&bits, p, 8);
  }
  return bits;
}

// Little endian, as every machine that we run on.
void write_bits(char* p, int size, uint64_t bits) {
  switch (size) {
    case 1:
      std::memcpy(p, &bits, 1);
      break;
    case 2:
      std::memcpy(p, &bits, 2);
      break;
    case 4:
      std::memcpy(p, &bits, 4);
      break;
    default:
      std::memcpy(p, &bits, 8);
  }
}

// Subgroups of the widest group.
size_t most_subgroups(const Kernel& kernel) {
  int threads = 1;
  for (const Phase& phase : kernel.phases)
    for (const Group& group : phase.groups) threads = std::max(threads, group.block_threads);
  return static_cast<size_t>((threads + kSubgroupLanes - 1) / kSubgroupLanes);
}

}  // namespace

InterpMemory::InterpMemory(const Kernel& kernel, const std::vector<void*>& memory,
                           const std::vector<int64_t>& dims, std::vector<std::string>& problems)
    : kernel_(kernel) {
  size_t count = kernel.buffers.size();
  views_.resize(count);
  counts_.resize(count);
  traffic_.resize(count);
  cells_.resize(count);
  stamps_.resize(count);
  scratch_.resize(static_cast<size_t>(kernel.scratch_bytes));
  scratch_stamps_.resize(scratch_.size());
  for (size_t i = 0; i < count; ++i) {
    View& view = views_[i];
    lay_out(kernel.buffers[i], view, dims);
    view.owner = static_cast<uint32_t>(i + 1);
    auto elems = static_cast<size_t>(view.elems);
    if (view.space == Space::global) {
      place_global(i, memory, problems);
    } else if (view.space == Space::scratch) {
      view.first_byte = kernel.buffers[i].offset_bytes;
      view.data = scratch_.data() + view.first_byte;
    } else {
      view.of_subgroup = view.elems * std::max(1, view.lanes);
      cells_[i].resize(static_cast<size_t>(view.of_subgroup) * most_subgroups(kernel));
      stamps_[i].resize(cells_[i].size());
      view.cells = cells_[i].data();
      view.stamps = stamps_[i].data();
    }
    counts_[i].resize(elems);
  }
}

void InterpMemory::lay_out(const Buffer& buffer, View& view, const std::vector<int64_t>& dims) {
  view.space = buffer.space;
  view.access = buffer.access;
  view.type = buffer.type;
  view.size = static_cast<int>(tensor::type_bytes(buffer.type));
  view.lanes = buffer.lanes;
  view.extents = buffer.extents;
  view.strides.resize(buffer.extents.size());
  view.elems = 1;
  for (size_t axis = buffer.extents.size(); axis-- > 0;) {
    int64_t& extent = view.extents[axis];
    if (extent < 0) extent = dims[static_cast<size_t>(-1 - extent)];
    view.strides[axis] = view.elems;
    view.elems *= extent;
  }
}

// Buffers at one address share the shadow state of their elements; any other overlap with a buffer
// that is stored could not be checked, and is refused.
void InterpMemory::place_global(size_t index, const std::vector<void*>& memory,
                                std::vector<std::string>& problems) {
  View& view = views_[index];
  view.data = static_cast<char*>(memory[index]);
  view.region = regions_.size();
  if (view.elems > 0 && view.data == nullptr) {
    problems.push_back(fmt::format("buffer {}: its memory is null", kernel_.buffers[index].name));
    view.elems = 0;
  }
  for (size_t other = 0; other < index; ++other) {
    const View& earlier = views_[other];
    if (earlier.space != Space::global || earlier.elems == 0 || view.elems == 0) continue;
    if (earlier.data == view.data && earlier.elems == view.elems && earlier.size == view.size) {
      view.region = earlier.region;
      continue;
    }
    bool apart = earlier.data + earlier.elems * earlier.size <= view.data ||
                 view.data + view.elems * view.size <= earlier.data;
    if (!apart && (earlier.access != Access::in || view.access != Access::in)) {
      problems.push_back(fmt::format("buffers {} and {} overlap in part",
                                     kernel_.buffers[other].name, kernel_.buffers[index].name));
    }
  }
  if (view.region == regions_.size()) regions_.emplace_back(static_cast<size_t>(view.elems));
}

void InterpMemory::begin_phase(int64_t tasks) {
  constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
  if (phase_end_ + tasks + 2 > kMax) {
    for (auto& region : regions_) {
      for (Shadow& shadow : region) shadow.writer = shadow.reader = 0;
    }
    phase_end_ = 1;
  }
  phase_tag_ = phase_end_;
  phase_end_ += static_cast<uint32_t>(tasks) + 1;
}

void InterpMemory::begin_task(int64_t task) {
  task_tag_ = phase_tag_ + 1 + static_cast<uint32_t>(task);
  // Stamps of the task: scratch_base_ + the owner (1 to the number of buffers), or + 0 while a copy
  // is pending.
  auto width = static_cast<uint32_t>(views_.size() + 1);
  if (scratch_base_ > std::numeric_limits<uint32_t>::max() - 2 * width) {
    std::fill(scratch_stamps_.begin(), scratch_stamps_.end(), 0);
    for (auto& stamps : stamps_) std::fill(stamps.begin(), stamps.end(), 0);
    scratch_base_ = task_stamp_ = 0;
  }
  scratch_base_ += width;
  ++task_stamp_;
}

void InterpMemory::enter_subgroup(int subgroup) {
  subgroup_ = subgroup;
  begin_accesses();
  clocks_.enter(subgroup);
}

bool InterpMemory::thread_race(std::vector<InterpClocks::Seen>& seen, int64_t first, int64_t count,
                               int lane, bool storing) {
  if (seen.size() < static_cast<size_t>(first + count))
    seen.resize(static_cast<size_t>(first + count));
  if (lane >= 0) lane %= kSubgroupLanes;
  bool raced = false;
  for (int64_t i = first; i < first + count; ++i) {
    InterpClocks::Seen& one = seen[static_cast<size_t>(i)];
    raced |= storing ? clocks_.store(one, lane) : clocks_.load(one, lane);
  }
  return raced;
}

void InterpMemory::count_traffic(BufferId id, std::vector<int64_t>& elements) {
  const View& view = views_[id.index()];
  if (view.space != Space::scratch && view.space != Space::global) return;
  Traffic& traffic = traffic_[id.index()];
  std::vector<int64_t> bytes;
  for (int64_t at : elements) bytes.push_back(view.first_byte + at * view.size);
  if (view.space == Space::scratch) {
    ++traffic.requests;
    traffic.bank_passes += count_bank_passes(bytes, view.size);
    return;
  }
  if (widens(traffic, bytes, view.size)) {
    traffic.last_bytes += view.size;
    traffic.sectors -= traffic.last.touched;
    traffic.least_sectors -= traffic.last.least;
  } else {
    ++traffic.requests;
    traffic.last_begins = std::move(bytes);
    traffic.last_bytes = view.size;
    traffic.last_run = run_;
  }
  traffic.last = count_sectors(traffic.last_begins, static_cast<int>(traffic.last_bytes));
  traffic.sectors += traffic.last.touched;
  traffic.least_sectors += traffic.last.least;
}

// Whether every lane continues where its last request ended, within one access.
bool InterpMemory::widens(const Traffic& traffic, const std::vector<int64_t>& bytes,
                          int64_t size) const {
  const int64_t together = traffic.last_bytes + size;
  if (traffic.last_run != run_ || traffic.last_begins.size() != bytes.size() ||
      together > kMostAccessBytes)
    return false;
  const auto aligned = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(together)));
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != traffic.last_begins[i] + traffic.last_bytes ||
        traffic.last_begins[i] % aligned != 0)
      return false;
  return true;
}

Hazard InterpMemory::load(const View& view, BufferId id, int64_t at, int lane, uint64_t& value) {
  ++counts_[id.index()][static_cast<size_t>(at)].loads;
  if (view.space == Space::global) {
    Shadow& shadow = regions_[view.region][static_cast<size_t>(at)];
    value = read_bits(view.data + at * view.size, view.type, view.size);
    if (shadow.reader < phase_tag_)
      shadow.reader = task_tag_;
    else if (shadow.reader != task_tag_)
      shadow.reader = phase_tag_;  // several
    if (shadow.writer > phase_tag_ && shadow.writer != task_tag_) return Hazard::race;
    if (clocks_.running()) {
      seen_.resize(regions_.size());
      if (thread_race(seen_[view.region], at, 1, lane, false)) return Hazard::thread_race;
    }
    if (shadow.owner == view.owner) return Hazard::none;
    if (shadow.owner != 0) return Hazard::overwritten;
    return view.access == Access::out ? Hazard::unwritten : Hazard::none;
  }
  if (view.space == Space::scratch) {
    value = read_bits(view.data + at * view.size, view.type, view.size);
    const int64_t byte = view.first_byte + at * view.size;
    const uint32_t* stamps = &scratch_stamps_[static_cast<size_t>(byte)];
    if (clocks_.running() && thread_race(scratch_seen_, byte, view.size, lane, false))
      return Hazard::thread_race;
    for (int i = 0; i < view.size; ++i) {
      if (stamps[i] == scratch_base_ + view.owner) continue;
      return stamps[i] < scratch_base_    ? Hazard::unwritten
             : stamps[i] == scratch_base_ ? Hazard::pending
                                          : Hazard::overwritten;
    }
    return Hazard::none;
  }
  int64_t cell =
      subgroup_ * view.of_subgroup + (view.lanes == 0 ? at : at * view.lanes + std::max(0, lane));
  value = view.cells[cell];
  return view.stamps[cell] == task_stamp_ ? Hazard::none : Hazard::unwritten;
}

Hazard InterpMemory::store(const View& view, BufferId id, int64_t at, int lane, uint64_t value) {
  ++counts_[id.index()][static_cast<size_t>(at)].stores;
  if (view.space == Space::global) {
    Shadow& shadow = regions_[view.region][static_cast<size_t>(at)];
    write_bits(view.data + at * view.size, view.size, value);
    bool raced = (shadow.writer > phase_tag_ && shadow.writer != task_tag_) ||
                 (shadow.reader >= phase_tag_ && shadow.reader != task_tag_);
    shadow.writer = task_tag_;
    shadow.owner = view.owner;
    if (raced) return Hazard::race;
    if (clocks_.running()) {
      seen_.resize(regions_.size());
      if (thread_race(seen_[view.region], at, 1, lane, true)) return Hazard::thread_race;
    }
    return Hazard::none;
  }
  if (view.space == Space::scratch) {
    write_bits(view.data + at * view.size, view.size, value);
    uint32_t* stamps = &scratch_stamps_[static_cast<size_t>(view.first_byte + at * view.size)];
    bool pending = false;
    for (int i = 0; i < view.size; ++i) {
      pending = pending || stamps[i] == scratch_base_;
      stamps[i] = scratch_base_ + view.owner;
    }
    const int64_t byte = view.first_byte + at * view.size;
    if (clocks_.running() && thread_race(scratch_seen_, byte, view.size, lane, true))
      return Hazard::thread_race;
    return pending ? Hazard::pending : Hazard::none;
  }
  int64_t cell = subgroup_ * view.of_subgroup + (view.lanes == 0 ? at : at * view.lanes + lane);
  view.cells[cell] = value;
  view.stamps[cell] = task_stamp_;
  return Hazard::none;
}

Hazard InterpMemory::mark_pending(const View& view, int64_t at, int lane) {
  uint32_t* stamps = &scratch_stamps_[static_cast<size_t>(view.first_byte + at * view.size)];
  bool pending = false;
  for (int i = 0; i < view.size; ++i) {
    pending = pending || stamps[i] == scratch_base_;
    stamps[i] = scratch_base_;
  }
  const int64_t byte = view.first_byte + at * view.size;
  if (clocks_.running() && thread_race(scratch_seen_, byte, view.size, lane, true))
    return Hazard::thread_race;
  return pending ? Hazard::pending : Hazard::none;
}

void InterpMemory::complete(const View& view, BufferId id, int64_t at, uint64_t value, int lane) {
  store(view, id, at, lane, value);
}

uint64_t InterpMemory::peek(const View& view, int64_t at) const {
  return read_bits(view.data + at * view.size, view.type, view.size);
}

std::vector<BufferCounts> InterpMemory::counts() const {
  std::vector<BufferCounts> result(views_.size());
  for (size_t i = 0; i < views_.size(); ++i) {
    BufferCounts& sum = result[i];
    for (const Count& count : counts_[i]) {
      sum.loads += count.loads;
      sum.stores += count.stores;
      sum.max_loads_per_elem = std::max<int64_t>(sum.max_loads_per_elem, count.loads);
      sum.max_stores_per_elem = std::max<int64_t>(sum.max_stores_per_elem, count.stores);
      sum.distinct_loaded += count.loads != 0;
      sum.distinct_stored += count.stores != 0;
    }
    const Traffic& traffic = traffic_[i];
    sum.requests = traffic.requests;
    sum.bank_passes = traffic.bank_passes;
    sum.sectors = traffic.sectors;
    sum.least_sectors = traffic.least_sectors;
  }
  return result;
}

std::vector<std::string> InterpMemory::never_stored() const {
  std::vector<std::string> result;
  for (size_t i = 0; i < views_.size(); ++i) {
    const View& view = views_[i];
    if (view.space != Space::global || view.access != Access::out) continue;
    int64_t missing = 0, first = -1;
    for (int64_t at = view.elems; at-- > 0;) {
      if (counts_[i][static_cast<size_t>(at)].stores != 0) continue;
      ++missing;
      first = at;
    }
    if (missing == 0) continue;
    result.push_back(fmt::format("output {}: {} of {} elements are never stored, the first is {}{}",
                                 kernel_.buffers[i].name, missing, view.elems,
                                 kernel_.buffers[i].name, element_text(view, first)));
  }
  return result;
}

std::vector<std::vector<bool>> InterpMemory::stored() const {
  std::vector<std::vector<bool>> result;
  for (size_t i = 0; i < views_.size(); ++i) {
    if (views_[i].space != Space::global) continue;
    result.emplace_back();
    if (views_[i].access == Access::in) continue;
    for (const Count& count : counts_[i]) result.back().push_back(count.stores != 0);
  }
  return result;
}

std::string element_text(const InterpMemory::View& view, int64_t at) {
  std::string text = "[";
  for (size_t axis = 0; axis < view.extents.size(); ++axis) {
    text += fmt::format("{}{}", axis ? ", " : "", at / view.strides[axis] % view.extents[axis]);
  }
  return text + "]";
}

}  // namespace heddle::kernel
