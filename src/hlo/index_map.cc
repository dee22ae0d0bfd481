#include "hlo/index_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::hlo {
namespace {

bool has(const Ints& list, int64_t d) {
  return std::find(list.begin(), list.end(), d) != list.end();
}

int64_t at(const Ints& list, int64_t i) { return list[static_cast<size_t>(i)]; }

int64_t place_in(const Ints& list, int64_t d) {
  const auto found = std::find(list.begin(), list.end(), d);
  return found == list.end() ? -1 : found - list.begin();
}

// Builds the links of one operand.
class Linker {
 public:
  Linker(const Instr& instr, size_t k)
      : instr_(instr), k_(k), x_(instr.operand(k)->shape()), rank_(x_.is_array() ? x_.rank() : 0) {}

  IndexMap run() {
    const Shape& y = instr_.shape();
    if (!x_.is_array() || (!y.is_array() && mapping() != Mapping::reduce)) return opaque();
    switch (mapping()) {
      case Mapping::none:
      case Mapping::whole:
      case Mapping::generate:
        return opaque();
      case Mapping::same:
        return same();
      case Mapping::broadcast:
        for (int64_t d = 0; d < rank_; ++d) link(d, at(instr_.dimensions(), d));
        break;
      case Mapping::permute:
        for (int64_t d = 0; d < rank_; ++d) link(at(instr_.dimensions(), d), d);
        break;
      case Mapping::regroup:
        return regrouped();
      case Mapping::affine:
        affine();
        break;
      case Mapping::join:
        join();
        break;
      case Mapping::reduce:
        reduce();
        break;
      case Mapping::window:
        return windows();
      case Mapping::contract:
        return contract();
      case Mapping::runtime:
        return runtime();
    }
    return std::move(map_);
  }

 private:
  Mapping mapping() const { return opcode_info(instr_.opcode()).mapping; }

  static IndexMap opaque() {
    IndexMap map;
    map.is_opaque = true;
    return map;
  }

  // Links one dimension to one; `to` -1: to none.
  DimLink& link(int64_t from, int64_t to, DimKind kind = DimKind::same) {
    if (map_.links.empty()) map_.links.reserve(static_cast<size_t>(std::max<int64_t>(rank_, 1)));
    DimLink& made = map_.links.emplace_back();
    made.kind = kind;
    made.from = from;
    made.from_end = from + 1;
    made.to = std::max<int64_t>(to, 0);
    made.to_end = to + 1;
    return made;
  }

  // An operand without dimensions is read at every element.
  IndexMap same() {
    if (rank_ != 0 && x_.extents() != instr_.shape().extents()) return opaque();
    for (int64_t d = 0; d < rank_; ++d) link(d, d);
    return std::move(map_);
  }

  IndexMap regrouped() {
    const Shape& y = instr_.shape();
    if (x_.elems() <= 0 || x_.elems() != y.elems()) return opaque();
    for (const ReshapePiece& piece : reshape_pieces(x_.extents(), y.extents())) {
      if (piece.from_begin == piece.from_end || piece.to_begin == piece.to_end) continue;
      DimLink& made = link(piece.from_begin, piece.to_begin, DimKind::regrouped);
      made.from_end = piece.from_end;
      made.to_end = piece.to_end;
      if (made.from_end - made.from == 1 && made.to_end - made.to == 1) made.kind = DimKind::same;
    }
    return std::move(map_);
  }

  // Dimension d of both: x = (y * stride + offset) / divisor.
  void strided(int64_t d, int64_t stride, int64_t offset, int64_t divisor, bool is_partial) {
    if (stride == 1 && offset == 0 && divisor == 1 && x_.dim(d) == instr_.shape().dim(d)) {
      link(d, d);
      return;
    }
    DimLink& made = link(d, d, DimKind::strided);
    made.stride = stride;
    made.offset = offset;
    made.divisor = divisor;
    made.is_partial = is_partial;
  }

  void affine() {
    if (k_ != 0) return;  // the padding value
    for (int64_t d = 0; d < rank_; ++d) {
      const auto i = static_cast<size_t>(d);
      if (const auto* slice = std::get_if<SliceAttrs>(&instr_.attrs())) {
        strided(d, slice->strides[i], slice->starts[i], 1, false);
      } else if (const auto* pad = std::get_if<PadAttrs>(&instr_.attrs())) {
        strided(d, 1, -pad->low[i], pad->interior[i] + 1, true);
      } else {
        const bool turned = has(instr_.dimensions(), d) && x_.dim(d) != 1;
        strided(d, turned ? -1 : 1, turned ? x_.dim(d) - 1 : 0, 1, false);
      }
    }
  }

  void join() {
    const int64_t along = instr_.dimensions().at(0);
    int64_t begin = 0;
    for (size_t i = 0; i < k_; ++i) begin += instr_.operand(i)->shape().dim(along);
    for (int64_t d = 0; d < rank_; ++d) strided(d, 1, d == along ? -begin : 0, 1, d == along);
  }

  // Several operands are reduced in lockstep with the first; start values have no dimensions.
  void reduce() {
    int64_t to = 0;
    for (int64_t d = 0; d < rank_; ++d) {
      if (!has(instr_.dimensions(), d)) {
        link(d, to++);
        continue;
      }
      DimLink& made = link(d, -1, DimKind::reduced);
      if (k_ == 0) continue;
      made.other = 0;
      made.other_dim = d;
    }
  }

  void windowed(int64_t from, int64_t to, const WindowDim& window, int64_t weights) {
    DimLink& made = link(from, to, DimKind::window);
    made.window = window;
    made.other = weights;
  }

  IndexMap windows() {
    if (const auto* convolution = std::get_if<ConvolutionAttrs>(&instr_.attrs()))
      return convolve(*convolution);
    const auto& dims = instr_.attrs_as<WindowAttrs>().window.dims;
    for (int64_t d = 0; d < rank_; ++d) {
      const WindowDim& dim = dims[static_cast<size_t>(d)];
      if (dim == WindowDim{})
        link(d, d);
      else
        windowed(d, d, dim, -1);
    }
    return std::move(map_);
  }

  // Feature and batch dimensions of grouped convolutions are not tracked.
  IndexMap convolve(const ConvolutionAttrs& attrs) {
    const ConvolutionDims& dims = attrs.dims;
    const bool in_groups = attrs.feature_group_count != 1 || attrs.batch_group_count != 1;
    const int64_t batch = k_ == 0 ? dims.input_batch : dims.kernel_output_feature;
    const int64_t feature = k_ == 0 ? dims.input_feature : dims.kernel_input_feature;
    const int64_t out = k_ == 0 ? dims.output_batch : dims.output_feature;
    link(batch, out, attrs.batch_group_count == 1 ? DimKind::same : DimKind::opaque);
    DimLink& summed = link(feature, -1, in_groups ? DimKind::opaque : DimKind::reduced);
    if (!in_groups) {
      summed.other = k_ == 0 ? 1 : 0;
      summed.other_dim = k_ == 0 ? dims.kernel_input_feature : dims.input_feature;
    }
    for (size_t i = 0; i < dims.input_spatial.size(); ++i) {
      if (k_ == 0)
        windowed(dims.input_spatial[i], dims.output_spatial[i], attrs.window.dims[i], 1);
      else
        link(dims.kernel_spatial[i], -1, DimKind::opaque);
    }
    return std::move(map_);
  }

  IndexMap contract() {
    if (k_ > 1) return opaque();
    const auto& attrs = instr_.attrs_as<DotAttrs>();
    const Ints* batch[2] = {&attrs.lhs_batch_dims, &attrs.rhs_batch_dims};
    const Ints* summed[2] = {&attrs.lhs_contracting_dims, &attrs.rhs_contracting_dims};
    // [batch, free of the left side, free of the right side]
    int64_t free = static_cast<int64_t>(batch[0]->size());
    if (k_ == 1) free = instr_.operand(0)->shape().rank() - static_cast<int64_t>(summed[0]->size());
    for (int64_t d = 0; d < rank_; ++d) {
      if (const int64_t pair = place_in(*summed[k_], d); pair >= 0) {
        DimLink& made = link(d, -1, DimKind::reduced);
        made.other = 1 - static_cast<int64_t>(k_);
        made.other_dim = at(*summed[1 - k_], pair);
      } else if (const int64_t to = place_in(*batch[k_], d); to >= 0) {
        link(d, to);
      } else {
        link(d, free++);
      }
    }
    return std::move(map_);
  }

  IndexMap runtime() {
    if (std::holds_alternative<GatherAttrs>(instr_.attrs())) return gather();
    const bool is_update = instr_.is(Opcode::dynamic_update_slice);
    const size_t first_position = is_update ? 2 : 1;
    if (k_ >= first_position) {  // scalars, or one vector of them
      for (int64_t d = 0; d < rank_; ++d) link(d, -1, DimKind::opaque);
      return std::move(map_);
    }
    const Shape& whole = instr_.operand(0)->shape();
    const Shape& box = is_update ? instr_.operand(1)->shape() : instr_.shape();
    const DimKind kind = !is_update ? DimKind::located
                         : k_ == 0  ? DimKind::overlaid
                                    : DimKind::placed;
    for (int64_t d = 0; d < rank_; ++d) {
      if (whole.dim(d) == box.dim(d)) {
        link(d, d);
        continue;
      }
      DimLink& made = link(d, d, kind);
      if (kind != DimKind::overlaid) locate(&made, first_position + static_cast<size_t>(d));
      made.limit = whole.dim(d) - box.dim(d);
    }
    return std::move(map_);
  }

  // The position of a dimension is operand number `at`; in the older form one vector operand has
  // all.
  void locate(DimLink* made, size_t at) const {
    const size_t first = at - static_cast<size_t>(made->from);
    const bool is_list = instr_.operand(first)->shape().rank() == 1;
    made->other = static_cast<int64_t>(is_list ? first : at);
    made->other_dim = is_list ? made->from : -1;
  }

  IndexMap gather() {
    const auto& attrs = instr_.attrs_as<GatherAttrs>();
    Ints batch, offsets;  // dimensions of the result
    for (int64_t d = 0; d < instr_.shape().rank(); ++d)
      (has(attrs.offset_dims, d) ? offsets : batch).push_back(d);
    // Index dimensions, without the one that holds the components of a position.
    const auto of_index = [&](int64_t d) {
      return batch[static_cast<size_t>(d > attrs.index_vector_dim ? d - 1 : d)];
    };
    if (k_ == 1) {
      for (int64_t d = 0; d < rank_; ++d) {
        if (d == attrs.index_vector_dim)
          link(d, -1, DimKind::opaque);
        else
          link(d, of_index(d));
      }
      return std::move(map_);
    }
    const bool is_list = attrs.index_vector_dim < instr_.operand(1)->shape().rank();
    size_t next = 0;
    for (int64_t d = 0; d < rank_; ++d) {
      if (const int64_t at = place_in(attrs.operand_batching_dims, d); at >= 0) {
        link(d, of_index(attrs.start_indices_batching_dims[static_cast<size_t>(at)]));
        continue;
      }
      const int64_t to = has(attrs.collapsed_slice_dims, d) ? -1 : offsets[next++];
      const int64_t size = attrs.slice_sizes[static_cast<size_t>(d)];
      const int64_t at = place_in(attrs.start_index_map, d);
      if (at < 0 && to >= 0) {
        link(d, to, size == x_.dim(d) ? DimKind::same : DimKind::strided);
        continue;
      }
      if (to >= 0 && size == x_.dim(d)) {  // the slice is as large as the dimension: position 0
        link(d, to);
        continue;
      }
      DimLink& made = link(d, to, DimKind::located);
      made.limit = x_.dim(d) - size;
      if (at < 0 || made.limit == 0) continue;
      made.other = 1;
      made.other_dim = is_list ? at : -1;
    }
    return std::move(map_);
  }

  const Instr& instr_;
  const size_t k_;
  const Shape& x_;
  const int64_t rank_;
  IndexMap map_;
};

}  // namespace

const DimLink* IndexMap::of_operand(int64_t d) const {
  for (const DimLink& link : links)
    if (link.from <= d && d < link.from_end) return &link;
  return nullptr;
}

const DimLink* IndexMap::of_result(int64_t d) const {
  for (const DimLink& link : links)
    if (link.to <= d && d < link.to_end) return &link;
  return nullptr;
}

IndexMap index_map(const Instr& instr, size_t k) { return Linker(instr, k).run(); }

std::string to_string(const IndexMap& map) {
  if (map.is_opaque) return "opaque";
  std::string text;
  for (const DimLink& link : map.links) {
    const auto dims = [](char of, int64_t begin, int64_t end) {
      std::string list;
      for (int64_t d = begin; d < end; ++d)
        list += fmt::format("{}{}{}", d > begin ? "," : "", of, d);
      return list;
    };
    const std::string from = dims('d', link.from, link.from_end),
                      to = dims('r', link.to, link.to_end);
    const std::string other = link.other < 0 ? ""
                              : link.other_dim < 0
                                  ? fmt::format("{}", link.other)
                                  : fmt::format("{}.{}", link.other, link.other_dim);
    text += text.empty() ? from : " " + from;
    switch (link.kind) {
      case DimKind::same:
        text += "=" + to;
        break;
      case DimKind::regrouped:
        text += "~" + to;
        break;
      case DimKind::strided:
        text += fmt::format("=({}*{}{:+})/{}{}", to, link.stride, link.offset, link.divisor,
                            link.is_partial ? "?" : "");
        break;
      case DimKind::located:
        text += fmt::format("={}+p{}<={}", to, other, link.limit);
        break;
      case DimKind::placed:
        text += fmt::format("={}-p{}<={}", to, other, link.limit);
        break;
      case DimKind::overlaid:
        text += fmt::format("={} overlaid", to);
        break;
      case DimKind::window:
        text += fmt::format(" window {}{}", to, other.empty() ? "" : " by " + other);
        break;
      case DimKind::reduced:
        text += " reduced" + (other.empty() ? "" : " with " + other);
        break;
      case DimKind::opaque:
        text += " opaque" + (to.empty() ? "" : " " + to);
        break;
    }
  }
  return text;
}

std::vector<ReshapePiece> reshape_pieces(const Ints& from, const Ints& to) {
  std::vector<ReshapePiece> pieces;
  const int64_t from_rank = static_cast<int64_t>(from.size());
  const int64_t to_rank = static_cast<int64_t>(to.size());
  int64_t i = 0, j = 0;
  while (i < from_rank || j < to_rank) {
    const bool one_from = i < from_rank && at(from, i) == 1;
    const bool one_to = j < to_rank && at(to, j) == 1;
    ReshapePiece piece{i, i, j, j};
    if (one_from || one_to) {
      i += one_from;
      j += one_to;
    } else {
      int64_t a = at(from, i++), b = at(to, j++);
      while (a != b) {
        if (a < b) {
          a *= at(from, i++);
        } else {
          b *= at(to, j++);
        }
      }
    }
    piece.from_end = i;
    piece.to_end = j;
    pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace heddle::hlo
