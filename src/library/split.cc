// Splits an operation into parts that run concurrently.
#include <algorithm>

#include "library/operation.h"

namespace heddle::library {
namespace {

// A part with less work is not worth another core.
constexpr double kLeastFlops = 2e6;
// Typical tile sizes of a library, in rows and columns.
constexpr int64_t kRowTile = 8, kLeastRows = 16, kColumnTile = 64;

struct Piece {
  int64_t begin = 0, size = 0;
};

// [0, total) in at most `count` pieces of equal size, a multiple of `tile`; the last may be
// smaller.
std::vector<Piece> cut(int64_t total, int64_t count, int64_t tile) {
  int64_t step = (total + count - 1) / std::max<int64_t>(count, 1);
  step = std::max<int64_t>(1, (step + tile - 1) / tile * tile);
  std::vector<Piece> pieces;
  for (int64_t begin = 0; begin < total; begin += step)
    pieces.push_back({begin, std::min(step, total - begin)});
  return pieces;
}

void split_product(const Operation& o, int64_t count, std::vector<Part>* parts) {
  const bool by_batch = o.batch >= count;
  for (const Piece& batch : cut(o.batch, by_batch ? count : o.batch, 1)) {
    Part part{o};
    part.operation.batch = batch.size;
    part.a = batch.begin * o.a[0];
    part.b = batch.begin * o.b[0];
    part.c = batch.begin * o.c[0];
    const int64_t left = by_batch ? 1 : (count + o.batch - 1) / o.batch;
    // Every part reads the smaller operand whole.
    const bool by_columns = (o.m < o.n || o.m < kLeastRows * left) && o.n >= kColumnTile * left;
    const int64_t rows = by_columns ? 1 : std::min(left, std::max<int64_t>(1, o.m / kRowTile));
    for (const Piece& row : cut(o.m, rows, kRowTile)) {
      for (const Piece& column : cut(o.n, by_columns ? left : 1, kColumnTile)) {
        Part piece = part;
        piece.operation.m = row.size;
        piece.operation.n = column.size;
        piece.a += row.begin * o.a[1];
        piece.b += column.begin * o.b[2];
        piece.bias = o.bias ? column.begin : 0;
        piece.c += row.begin * o.c[1] + column.begin * o.c[2];
        parts->push_back(std::move(piece));
      }
    }
  }
}

// Output rows [begin, begin + size) of a convolution, with the input rows that they read. False:
// they read only padding.
bool take_rows(const Piece& rows, Part* part) {
  Operation& o = part->operation;
  const int64_t first = rows.begin * o.stride[0] - o.low[0];
  const int64_t end = first + (rows.size - 1) * o.stride[0] + o.dilation[0] * (o.kernel[0] - 1) + 1;
  const int64_t from = std::max<int64_t>(first, 0), to = std::min(end, o.input[0]);
  if (from >= to) return false;
  part->a += from * o.a[2];
  part->c += rows.begin * o.c[2];
  o.low[0] = from - first;
  o.high[0] = end - to;
  o.input[0] = to - from;
  o.output[0] = rows.size;
  return true;
}

bool split_rows(const Operation& o, int64_t count, std::vector<Part>* parts) {
  for (int64_t image = 0; image < o.images; ++image) {
    for (const Piece& rows : cut(o.output[0], count, 1)) {
      Part part{o};
      part.operation.images = 1;
      part.a = image * o.a[0];
      part.c = image * o.c[0];
      if (!take_rows(rows, &part)) return false;
      parts->push_back(std::move(part));
    }
  }
  return true;
}

void split_convolution(const Operation& o, int64_t count, std::vector<Part>* parts) {
  if (o.images < count && split_rows(o, (count + o.images - 1) / o.images, parts)) return;
  parts->clear();
  for (const Piece& images : cut(o.images, count, 1)) {
    Part part{o};
    part.operation.images = images.size;
    part.a = images.begin * o.a[0];
    part.c = images.begin * o.c[0];
    parts->push_back(std::move(part));
  }
}

}  // namespace

int64_t part_count(const Operation& operation, int cores) {
  const double worth = operation.flops() / kLeastFlops;
  return std::max<int64_t>(1, std::min<int64_t>(cores, static_cast<int64_t>(worth)));
}

std::vector<Part> split(const Operation& operation, int64_t count) {
  std::vector<Part> parts;
  if (count <= 1) return {Part{operation}};
  if (operation.kind == Operation::Kind::product)
    split_product(operation, count, &parts);
  else
    split_convolution(operation, count, &parts);
  return parts;
}

}  // namespace heddle::library
