// Layout (little-endian words): bytes of the meta section, of the object, number of constants; for
// each constant buffer {number of its weight or kOwn, offset in it or in the stored constants}; the
// meta section, the object, and the stored constants, each at a multiple of 64 bytes from the
// first.
#include "program/image.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "program/encode.h"

namespace heddle::program {
namespace {

using tensor::Literal;

constexpr uint64_t kOwn = ~uint64_t{0};
constexpr int kSizes = 3;

struct Place {
  uint64_t weight = kOwn, offset = 0;
};

uint64_t align_up(uint64_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

const char* begin_of(const Literal& literal) { return static_cast<const char*>(literal.data()); }

// Finds the weight that contains an address range.
class Weights {
 public:
  explicit Weights(std::span<const Literal> weights) : weights_(weights), order_(weights.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return begin_of(weights_[a]) < begin_of(weights_[b]);
    });
  }
  std::optional<Place> find(const Literal& value) const {
    const char* begin = begin_of(value);
    const auto after = std::upper_bound(
        order_.begin(), order_.end(), begin,
        [&](const char* at, size_t weight) { return at < begin_of(weights_[weight]); });
    if (value.bytes() == 0 || after == order_.begin()) return std::nullopt;
    const size_t number = *(after - 1);
    const int64_t offset = begin - begin_of(weights_[number]);
    if (offset + value.bytes() > weights_[number].bytes()) return std::nullopt;
    return Place{number, static_cast<uint64_t>(offset)};
  }

 private:
  std::span<const Literal> weights_;
  std::vector<size_t> order_;  // by address
};

void append(std::vector<uint8_t>& out, const void* data, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(data);
  out.insert(out.end(), from, from + bytes);
}

}  // namespace

std::optional<std::vector<uint8_t>> to_image(const Program& program,
                                             std::span<const Literal> weights, int64_t most_bytes) {
  const Weights known(weights);
  std::vector<uint8_t> places, kept;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind != BufferKind::constant) continue;
    const Literal& value = program.constants[i];
    std::optional<Place> place = known.find(value);
    if (!place) {
      place = Place{kOwn, kept.size()};
      if (static_cast<int64_t>(kept.size()) + value.bytes() > most_bytes) return std::nullopt;
      append(kept, value.data(), static_cast<size_t>(value.bytes()));
      kept.resize(align_up(kept.size()));
    }
    append(places, &*place, sizeof(*place));
  }
  const std::vector<uint8_t> meta = encode(program);
  const uint64_t sizes[kSizes] = {meta.size(), program.object.size(),
                                  places.size() / sizeof(Place)};
  std::vector<uint8_t> bytes;
  bytes.reserve(sizeof(sizes) + places.size() + meta.size() + program.object.size() + kept.size());
  append(bytes, sizes, sizeof(sizes));
  for (const std::span<const uint8_t> part :
       {std::span<const uint8_t>(places), {meta}, {program.object}, {kept}})
    append(bytes, part.data(), part.size());
  return bytes;
}

Result<Program> from_image(std::span<const uint8_t> bytes, std::span<const Literal> weights) {
  const Error damaged{ErrorKind::user, "not the image of a program"};
  uint64_t sizes[kSizes];
  if (bytes.size() < sizeof(sizes)) return tl::unexpected(damaged);
  std::memcpy(sizes, bytes.data(), sizeof(sizes));
  std::span<const uint8_t> rest = bytes.subspan(sizeof(sizes));
  auto take = [&](uint64_t count, uint64_t each) -> std::optional<std::span<const uint8_t>> {
    if (count > rest.size() / each) return std::nullopt;
    const auto part = rest.first(count * each);
    rest = rest.subspan(count * each);
    return part;
  };
  const auto places = take(sizes[2], sizeof(Place));
  const auto meta = take(places ? sizes[0] : kOwn, 1), object = take(meta ? sizes[1] : kOwn, 1);
  if (!object) return tl::unexpected(damaged);
  HEDDLE_ASSIGN_OR_RETURN(Decoded decoded, decode(*meta));
  Program program = std::move(decoded.program);
  program.object.assign(object->begin(), object->end());
  const auto kept = std::make_shared<std::vector<uint8_t>>(rest.begin(), rest.end());
  size_t next = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind != BufferKind::constant) continue;
    const tensor::Shape& shape = decoded.constant_shapes[i];
    if (next == sizes[2] || !shape.is_array() || !shape.is_static()) return tl::unexpected(damaged);
    Place place;
    std::memcpy(&place, places->data() + next++ * sizeof(Place), sizeof(place));
    const bool own = place.weight == kOwn;
    if (!own && place.weight >= weights.size()) return tl::unexpected(damaged);
    const uint64_t room = own ? kept->size() : static_cast<uint64_t>(weights[place.weight].bytes());
    if (place.offset > room || static_cast<uint64_t>(shape.bytes()) > room - place.offset)
      return tl::unexpected(damaged);
    program.constants[i] =
        own ? Literal::view(shape, kept->data() + place.offset, kept)
            : Literal::view(shape, begin_of(weights[place.weight]) + place.offset,
                            std::make_shared<const Literal>(weights[place.weight]));
  }
  if (next != sizes[2]) return tl::unexpected(damaged);
  return program;
}

}  // namespace heddle::program
