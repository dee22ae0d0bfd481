// Load on examples/serve, and the same work in a loop without a server.
//
//   serve_load http PORT MODEL CLIENTS SECONDS LENGTHS       requests one behind the other from
//   each client serve_load loop MODEL.onnx THREADS BATCH SECONDS LENGTHS  in this process; BATCH
//   sentences of nearly
//                                                             the same length at a time
//
// The model has inputs input_ids and attention_mask, s64 [batch, sequence], and an output
// embedding. LENGTHS: "1-128", each as likely; or "log:MEDIAN" (log-normal, at most 128: lengths of
// sentences).
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/heddle.h"

namespace {

constexpr int64_t kLongest = 128, kWords = 30000;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::exit(2);
}

void must(heddle_status* status) {
  if (status != nullptr) fail(heddle_status_message(status));
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Lengths {
 public:
  explicit Lengths(const std::string& kind) {
    int64_t from = 0, to = 0;
    if (std::sscanf(kind.c_str(), "%ld-%ld", &from, &to) == 2 && 0 < from && from <= to &&
        to <= kLongest)
      uniform_ = std::uniform_int_distribution<int64_t>(from, to);
    else if (kind.starts_with("log:"))
      normal_ = std::lognormal_distribution<double>(std::log(std::atof(kind.c_str() + 4)), 0.6),
      log_ = true;
    else
      fail("lengths are '" + kind + "', wanted 1-128 or log:MEDIAN");
  }
  int64_t next() {
    if (!log_) return uniform_(random_);
    return std::clamp<int64_t>(std::lround(normal_(random_)), 1, kLongest);
  }
  std::vector<int64_t> sentence(int64_t length) {
    std::vector<int64_t> ids(static_cast<size_t>(length));
    for (int64_t& id : ids) id = static_cast<int64_t>(random_() % kWords);
    return ids;
  }

 private:
  std::mt19937_64 random_{1};
  std::uniform_int_distribution<int64_t> uniform_;
  std::lognormal_distribution<double> normal_;
  bool log_ = false;
};

void report(const char* what, std::vector<double> ms, double seconds, int64_t tokens) {
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double share) {
    return ms[static_cast<size_t>(share * static_cast<double>(ms.size() - 1))];
  };
  std::printf(
      "%s: %.1f sentences/s, %.0f tokens/s; latency median %.2f, p90 %.2f, p99 %.2f, most %.2f ms; "
      "p99/median %.2f\n",
      what, static_cast<double>(ms.size()) / seconds, static_cast<double>(tokens) / seconds,
      at(0.5), at(0.9), at(0.99), ms.back(), at(0.99) / at(0.5));
}

// ---- over HTTP: one thread, so that the clients take little of the server's processors ----

struct Client {
  int fd = -1;
  int64_t length = 0;
  std::string out, in;
  Clock::time_point begin;
};

std::string request(const std::string& model, const std::vector<int64_t>& ids) {
  const std::vector<int64_t> mask(ids.size(), 1);
  const std::string bytes = std::to_string(ids.size() * 8),
                    shape = "[1," + std::to_string(ids.size()) + "]";
  std::string json = R"({"inputs":[)";
  for (const char* name : {"input_ids", "attention_mask"})
    json += std::string(name[0] == 'i' ? "" : ",") + R"({"name":")" + name + R"(","shape":)" +
            shape + R"(,"datatype":"INT64","parameters":{"binary_data_size":)" + bytes + "}}";
  json += R"(],"outputs":[{"name":"embedding","parameters":{"binary_data":true}}]})";
  std::string body = json;
  body.append(reinterpret_cast<const char*>(ids.data()), ids.size() * 8);
  body.append(reinterpret_cast<const char*>(mask.data()), mask.size() * 8);
  return "POST /v2/models/" + model +
         "/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: " +
         std::to_string(json.size()) + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

bool send_all(Client& client) {
  while (!client.out.empty()) {
    const ssize_t sent = send(client.fd, client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    client.out.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

// Whether a whole reply is there; it is removed. Anything but 200 ends the measurement.
bool take_reply(Client& client) {
  const size_t head = client.in.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  const size_t length = client.in.find("Content-Length: ");
  if (length == std::string::npos || length > head) fail("a reply without a length");
  if (!client.in.starts_with("HTTP/1.1 200")) fail("a reply is " + client.in.substr(0, 400));
  const size_t all = head + 4 + std::strtoull(client.in.c_str() + length + 16, nullptr, 10);
  if (client.in.size() < all) return false;
  client.in.erase(0, all);
  return true;
}

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail("nothing listens at that port");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

void measure_http(int port, const std::string& model, size_t count, double seconds,
                  Lengths lengths) {
  const int epoll = epoll_create1(0);
  std::vector<Client> clients(count);
  const auto ask = [&](Client& client) {
    client.length = lengths.next();
    client.out = request(model, lengths.sentence(client.length));
    client.begin = Clock::now();
    if (!send_all(client)) fail("the server closed a connection");
  };
  for (Client& client : clients) {
    client.fd = connect_to(port);
    epoll_event event{EPOLLIN, {&client}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, client.fd, &event);
    ask(client);
  }
  const auto start = Clock::now();
  const double warm = std::min(2.0, seconds / 4);
  std::vector<double> ms;
  int64_t tokens = 0;
  while (seconds_since(start) < seconds) {
    epoll_event events[64];
    const int ready = epoll_wait(epoll, events, 64, 100);
    for (int e = 0; e < ready; ++e) {
      Client& client = *static_cast<Client*>(events[e].data.ptr);
      char buffer[65536];
      const ssize_t got = recv(client.fd, buffer, sizeof buffer, 0);
      if (got <= 0) fail("the server closed a connection");
      client.in.append(buffer, static_cast<size_t>(got));
      if (!take_reply(client)) continue;
      if (seconds_since(start) > warm)
        ms.push_back(seconds_since(client.begin) * 1000), tokens += client.length;
      ask(client);
    }
  }
  report("http", ms, seconds_since(start) - warm, tokens);
}

// ---- in this process ----

void measure_loop(const std::string& file, int threads, int64_t batch, double seconds,
                  Lengths lengths) {
  const heddle_dim dims[] = {{"batch", batch}}, bounds[] = {{"sequence", kLongest}};
  heddle_open_options open{};
  open.struct_size = sizeof open;
  open.dims = dims, open.dim_count = 1, open.bounds = bounds, open.bound_count = 1;
  heddle_model* model = nullptr;
  must(heddle_model_open(file.c_str(), &open, &model));
  heddle_compile_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  heddle_program* program = nullptr;
  must(heddle_compile(model, &options, &program));
  heddle_context* context = nullptr;
  must(heddle_context_create(program, &context));
  heddle_port port{};
  port.struct_size = sizeof port;
  heddle_model_output(model, 0, &port);
  std::vector<float> out(static_cast<size_t>(port.bytes) / 4);
  // As many sentences as are queued by 64 clients, the nearest lengths together.
  std::vector<int64_t> pool;
  std::vector<double> ms;
  int64_t tokens = 0, sentences = 0;
  const auto run = [&](std::vector<int64_t> group) {
    const int64_t longest = group.back();
    std::vector<int64_t> ids, mask;
    for (const int64_t length : group) {
      std::vector<int64_t> one = lengths.sentence(length), ones(static_cast<size_t>(length), 1);
      one.resize(static_cast<size_t>(longest)), ones.resize(static_cast<size_t>(longest));
      ids.insert(ids.end(), one.begin(), one.end());
      mask.insert(mask.end(), ones.begin(), ones.end());
    }
    must(heddle_context_set_dim(context, "sequence", longest));
    must(heddle_context_bind_input_named(context, "input_ids", ids.data()));
    must(heddle_context_bind_input_named(context, "attention_mask", mask.data()));
    must(heddle_context_bind_output(context, 0, out.data()));
    const auto begin = Clock::now();
    must(heddle_context_run(context));
    ms.push_back(seconds_since(begin) * 1000);
    sentences += std::ssize(group);
    for (const int64_t length : group) tokens += length;
  };
  for (const int64_t length : {kLongest, int64_t{64}, int64_t{16}, int64_t{4}, int64_t{1}})
    run(std::vector<int64_t>(static_cast<size_t>(batch), length));
  ms.clear(), tokens = sentences = 0;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    if (pool.empty()) {
      for (int64_t i = 0; i < 64 / batch * batch; ++i) pool.push_back(lengths.next());
      std::sort(pool.begin(), pool.end());
    }
    run({pool.end() - batch, pool.end()});
    pool.resize(pool.size() - static_cast<size_t>(batch));
  }
  const double took = seconds_since(start);
  std::printf("loop: %.1f sentences/s, %.0f tokens/s, %.2f ms a run\n",
              static_cast<double>(sentences) / took, static_cast<double>(tokens) / took,
              took * 1000 / static_cast<double>(ms.size()));
  heddle_context_free(context);
  heddle_program_free(program);
  heddle_model_free(model);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (argc != 7 || (kind != "http" && kind != "loop"))
    fail(
        "serve_load http PORT MODEL CLIENTS SECONDS LENGTHS | loop MODEL.onnx THREADS BATCH "
        "SECONDS LENGTHS");
  if (kind == "http")
    measure_http(std::atoi(argv[2]), argv[3], static_cast<size_t>(std::max(1, std::atoi(argv[4]))),
                 std::atof(argv[5]), Lengths(argv[6]));
  else
    measure_loop(argv[2], std::atoi(argv[3]), std::max(1, std::atoi(argv[4])), std::atof(argv[5]),
                 Lengths(argv[6]));
  return 0;
}
