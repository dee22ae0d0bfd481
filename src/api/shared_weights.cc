#include "api/shared_weights.h"

#include <cstring>

#include "cache/piece_hash.h"

namespace heddle::api {

using program::BufferKind;
using program::Program;
using tensor::Literal;

Status SharedWeights::share(Program& program, const Literal& block, const runtime::Device& device,
                            int threads) {
  const auto* begin = static_cast<const char*>(block.data());
  std::vector<size_t> inside;
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind != BufferKind::constant) continue;
    const Literal& value = program.constants[i];
    const auto* data = static_cast<const char*>(value.data());
    if (value.bytes() == 0 || data < begin || data >= begin + block.bytes()) continue;
    inside.push_back(i);
    texts.emplace_back(data, static_cast<size_t>(value.bytes()));
  }
  const std::vector<Hash128> hashes = cache::hash_by_pieces(texts, threads);
  auto align_up = [](int64_t bytes) {
    return (bytes + program::kAlignmentBytes - 1) / program::kAlignmentBytes *
           program::kAlignmentBytes;
  };
  int64_t known_bytes = 0, other_bytes = 0;
  for (size_t k = 0; k < inside.size(); ++k)
    (known_.contains(hashes[k]) ? known_bytes : other_bytes) +=
        align_up(program.constants[inside[k]].bytes());
  // The others are moved, so that the block can be freed.
  std::shared_ptr<runtime::Block> moved;
  if (known_bytes > 0) {
    HEDDLE_ASSIGN_OR_RETURN(runtime::Block made, runtime::Block::allocate(device, other_bytes));
    moved = std::make_shared<runtime::Block>(std::move(made));
  }
  char* free = moved ? moved->data() : nullptr;
  for (size_t k = 0; k < inside.size(); ++k) {
    Literal& value = program.constants[inside[k]];
    if (const auto found = known_.find(hashes[k]); found != known_.end()) {
      const auto owner = std::make_shared<const Literal>(found->second);
      value = Literal::view(value.shape(), owner->data(), owner);
      continue;
    }
    if (moved) {
      std::memcpy(free, value.data(), static_cast<size_t>(value.bytes()));
      value = Literal::view(value.shape(), free, moved);
      free += align_up(value.bytes());
    }
    known_.emplace(hashes[k], value);
  }
  return {};
}

}  // namespace heddle::api
