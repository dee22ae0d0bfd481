#include "fuse/reach.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace heddle::fuse {

void Band::cover(int first_word, int end_word) {
  if (words_.empty()) {
    first_word_ = first_word;
    words_.assign(static_cast<size_t>(end_word - first_word), 0);
    return;
  }
  if (first_word < first_word_) {
    words_.insert(words_.begin(), static_cast<size_t>(first_word_ - first_word), 0);
    first_word_ = first_word;
  }
  const auto size = static_cast<size_t>(end_word - first_word_);
  if (size > words_.size()) words_.resize(size, 0);
}

void Band::add(int vertex) {
  const int word = vertex / 64;
  cover(word, word + 1);
  words_[static_cast<size_t>(word - first_word_)] |= uint64_t{1} << (vertex % 64);
}

bool Band::has(int vertex) const {
  const int word = vertex / 64 - first_word_;
  if (word < 0 || word >= static_cast<int>(words_.size())) return false;
  return (words_[static_cast<size_t>(word)] >> (vertex % 64)) & 1;
}

void Band::unite(const Band& other) { unite(other, 0, std::numeric_limits<int>::max()); }

void Band::unite(const Band& other, int low, int high) {
  const int first = std::max(other.first_word_, low / 64);
  const int end =
      std::min(other.first_word_ + static_cast<int>(other.words_.size()), high / 64 + 1);
  if (first >= end) return;
  cover(first, end);
  uint64_t* to = words_.data() + (first - first_word_);
  const uint64_t* from = other.words_.data() + (first - other.first_word_);
  for (int i = 0; i < end - first; ++i) to[i] |= from[i];
}

int Band::common(const Band& a, const Band& b, const std::vector<int>& without) {
  const int first = std::max(a.first_word_, b.first_word_);
  const int end = std::min(a.first_word_ + static_cast<int>(a.words_.size()),
                           b.first_word_ + static_cast<int>(b.words_.size()));
  for (int word = first; word < end; ++word) {
    uint64_t both = a.words_[static_cast<size_t>(word - a.first_word_)] &
                    b.words_[static_cast<size_t>(word - b.first_word_)];
    while (both) {
      const int vertex = word * 64 + std::countr_zero(both);
      if (!std::binary_search(without.begin(), without.end(), vertex)) return vertex;
      both &= both - 1;
    }
  }
  return -1;
}

Reach::Reach(const Graph& graph) {
  const auto count = static_cast<int>(graph.vertices.size());
  ancestors_.resize(graph.vertices.size());
  descendants_.resize(graph.vertices.size());
  for (int v = 0; v < count; ++v) {
    Band& band = ancestors_[static_cast<size_t>(v)];
    band.add(v);
    for (int producer : graph.vertices[static_cast<size_t>(v)].producers)
      if (v - producer < kSpan)
        band.unite(ancestors_[static_cast<size_t>(producer)], std::max(0, v - kSpan), v);
  }
  for (int v = count; v-- > 0;) {
    Band& band = descendants_[static_cast<size_t>(v)];
    band.add(v);
    for (int consumer : graph.vertices[static_cast<size_t>(v)].consumers)
      if (consumer - v < 2 * kSpan)
        band.unite(descendants_[static_cast<size_t>(consumer)], v, v + 2 * kSpan);
  }
}

}  // namespace heddle::fuse
