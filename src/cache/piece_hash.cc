#include "cache/piece_hash.h"

#include <atomic>
#include <system_error>
#include <thread>

namespace heddle::cache {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
// Less than this is hashed faster than another thread starts.
constexpr size_t kAlone = size_t{16} << 20;

}  // namespace

std::vector<Hash128> hash_by_pieces(std::span<const std::string_view> arrays, int threads) {
  std::vector<std::string_view> pieces;
  std::vector<size_t> first;  // by array: index of its first piece
  size_t bytes = 0;
  for (const std::string_view all : arrays) {
    first.push_back(pieces.size());
    bytes += all.size();
    for (size_t at = 0; at < all.size(); at += kPiece) pieces.push_back(all.substr(at, kPiece));
  }
  first.push_back(pieces.size());
  std::vector<Hash128> of_pieces(pieces.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < pieces.size(); i = next++) of_pieces[i] = hash128(pieces[i]);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads && bytes > kAlone; ++t) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads available: the others do it
      break;
    }
  }
  work();
  for (std::thread& other : others) other.join();
  std::vector<Hash128> hashes;
  for (size_t i = 0; i < arrays.size(); ++i)
    hashes.push_back(hash128({reinterpret_cast<const char*>(of_pieces.data() + first[i]),
                              (first[i + 1] - first[i]) * sizeof(Hash128)}));
  return hashes;
}

}  // namespace heddle::cache
