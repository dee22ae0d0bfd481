#include "hlo/node_names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hlo/lexer.h"
#include "hlo/module.h"

namespace heddle::hlo {
namespace {

// Unions up to this size are searched, so that a name added twice is kept once.
constexpr size_t kShort = 64;
constexpr std::string_view kMore = "...";

std::string escaped(std::string_view name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const std::string_view next = name.substr(i + 1, 2);
    if (name[i] == ';') {
      text += "%3B";
    } else if (name[i] == '%' && (next == "3B" || next == "25")) {
      text += "%25";
    } else {
      text += name[i];
    }
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view code = text.substr(i, 3),
                           next = text.substr(std::min(i + 3, text.size()), 2);
    if (code == "%3B") {
      name += ';';
      i += 2;
    } else if (code == "%25" && (next == "3B" || next == "25")) {
      name += '%';
      i += 2;
    } else {
      name += text[i];
    }
  }
  return name;
}

}  // namespace

// A name, or two parts.
struct NodeNames::Part {
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  // A long chain of unions is destroyed in a loop: the default destructor would recurse as deep.
  ~Part() {
    std::vector<std::shared_ptr<const Part>> rest;
    rest.push_back(std::move(first));
    rest.push_back(std::move(second));
    while (!rest.empty()) {
      const std::shared_ptr<const Part> part = std::move(rest.back());
      rest.pop_back();
      if (!part || part.use_count() > 1) continue;
      auto& last = const_cast<Part&>(*part);
      rest.push_back(std::move(last.first));
      rest.push_back(std::move(last.second));
    }
  }

  std::string name;
  std::shared_ptr<const Part> first, second;
  // The smallest part that starts like this one and has many names, so that the first few of a long
  // list are found without walking all of it. Itself if short.
  const Part* head = this;
  size_t count = 1;  // of names, with repetitions
};

NodeNames::NodeNames(std::string name) {
  if (name.empty()) return;
  auto part = std::make_shared<Part>();
  part->name = std::move(name);
  root_ = std::move(part);
}

NodeNames NodeNames::from_text(std::string_view text) {
  NodeNames names;
  while (!text.empty()) {
    const size_t end = text.find(';');
    const std::string_view item = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    names.add(NodeNames(unescaped(item)));
  }
  return names;
}

void NodeNames::add(const NodeNames& more) {
  if (more.root_ == nullptr || more.root_ == root_) return;
  if (root_ == nullptr) {
    root_ = more.root_;
    return;
  }
  if (root_->first == more.root_ || root_->second == more.root_) return;
  const size_t count = root_->count + more.root_->count;
  if (count <= kShort) {
    const auto known = list(), added = more.list();
    const auto is_known = [&](std::string_view name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    if (std::all_of(added.begin(), added.end(), is_known)) return;
  }
  auto both = std::make_shared<Part>();
  both->first = root_;
  both->second = more.root_;
  both->count = count;
  if (root_->count >= kShort) both->head = root_->head;
  root_ = std::move(both);
}

std::vector<std::string_view> NodeNames::list() const {
  NodeList list;
  list.add(*this);
  return list.take();
}

std::string NodeNames::text(size_t most) const {
  NodeNames head;
  if (root_ != nullptr) head.root_ = {root_, root_->head};
  auto names = head.list();
  if (names.size() <= most) names = list();
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    text += (i == 0 ? "" : ";") + escaped(names[i]);
  if (most > 0 && names.size() > most) text += fmt::format(";{}", kMore);
  return text;
}

bool NodeNames::operator==(const NodeNames& other) const {
  return root_ == other.root_ || list() == other.list();
}

void NodeList::add(const NodeNames& names) {
  std::vector<const NodeNames::Part*> stack{names.root_.get()};
  while (!stack.empty()) {
    const NodeNames::Part* part = stack.back();
    stack.pop_back();
    if (part == nullptr || !done_.insert(part).second) continue;
    if (!part->name.empty()) add_name(part->name);
    stack.push_back(part->second.get());
    stack.push_back(part->first.get());
  }
}

void NodeList::add_name(std::string_view name) {
  if (seen_.insert(name).second) names_.push_back(name);
}

void NodeList::add(const Instr& instr) {
  add(instr.nodes());
  for (const Computation* called : instr.called()) add(*called);
}

void NodeList::add(const Computation& computation) {
  if (!done_.insert(&computation).second) return;
  for (const Instr* instr : computation.instrs()) add(*instr);
}

namespace {

// Where `key=` begins among the fields of metadata, outside strings and inner brackets, and where
// its value ends. Both are the end of the text if there is none.
std::pair<size_t, size_t> find_field(std::string_view metadata, std::string_view key) {
  Lexer lexer(metadata);
  if (lexer.accept('{')) {
    while (!lexer.at_end() && lexer.peek() != '}') {
      const size_t begin = lexer.offset();
      const std::string_view name = lexer.ident();
      if (name.empty() || !lexer.accept('=') || !lexer.value(false)) break;
      const size_t end = lexer.offset_of(lexer.rest());
      if (name == key) return {begin, end};
      lexer.accept(',');
    }
  }
  return {metadata.size(), metadata.size()};
}

}  // namespace

NodeNames take_op_name(std::string* metadata) {
  const auto [begin, end] = find_field(*metadata, "op_name");
  if (begin == end) return {};
  Lexer lexer(*metadata, begin, end);
  lexer.ident();
  lexer.accept('=');
  const Result<std::string> text = lexer.quoted("a name");
  if (!text) return {};
  // Erase with the white space or the comma on one side.
  const bool first = (*metadata)[begin - 1] == '{';
  const size_t rest = first && end + 1 < metadata->size() ? end + 1 : end;
  metadata->erase(first ? begin : begin - 1, first ? rest - begin : end - begin + 1);
  return NodeNames::from_text(*text);
}

std::string with_op_name(std::string_view metadata, const NodeNames& names, size_t most) {
  const std::string text = names.text(most);
  if (text.empty() || !metadata.starts_with('{')) return std::string(metadata);
  // XLA's order: op_type, op_name, and the others.
  const auto [begin, end] = find_field(metadata, "op_type");
  const bool behind = begin != end;
  const size_t at = behind ? end : 1;
  const bool others = !behind && metadata.substr(1) != "}";
  return fmt::format("{}{}op_name={}{}{}", metadata.substr(0, at), behind ? " " : "", quote(text),
                     others ? " " : "", metadata.substr(at));
}

}  // namespace heddle::hlo
