#include "http.h"

#include <poll.h>

#include <cstring>

namespace serve {

static constexpr size_t kMostHeadBytes = 32768, kMostUnread = 1 << 20;
static constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Type: application/json\r\nContent-Length: 41\r\n\r\n"
    "{\"error\":\"there are too many connections\"}";
thread_local Connection* connection = nullptr;

static Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

bool Connection::wait(short events) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  pollfd one{fd_, events, 0};
  is_late = left <= 0 || poll(&one, 1, static_cast<int>(left)) <= 0;
  return !is_late;
}

bool Connection::await_request(double seconds) {
  deadline_ = after(seconds);
  left_ = kMostHeadBytes;
  keep = is_over = false;
  if (begin_ == end_ && !wait(POLLIN)) return false;
  deadline_ = after(limits_.request_seconds);
  return true;
}

ssize_t Connection::read(char* to, size_t size) {
  if (!flush()) return -1;
  if (begin_ == end_) {
    if (!wait(POLLIN)) return -1;
    const ssize_t got = recv(fd_, buffer_, sizeof buffer_, 0);
    if (got <= 0) return got;
    begin_ = 0, end_ = static_cast<size_t>(got);
  }
  size = std::min(size, end_ - begin_);
  is_over = is_over || size > left_;
  if (is_over) return -1;
  std::memcpy(to, buffer_ + begin_, size);
  begin_ += size, left_ -= size;
  return static_cast<ssize_t>(size);
}

ssize_t Connection::write(const char* from, size_t size) {
  reply_.append(from, size);
  return reply_.size() < sizeof buffer_ || flush() ? static_cast<ssize_t>(size) : -1;
}

bool Connection::flush() {
  if (!reply_.empty()) deadline_ = after(limits_.request_seconds);
  for (size_t at = 0; at < reply_.size();) {
    if (!wait(POLLOUT)) return false;
    const ssize_t sent =
        send(fd_, reply_.data() + at, reply_.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return false;
    at += static_cast<size_t>(std::max<ssize_t>(sent, 0));
  }
  reply_.clear();
  return true;
}

void Connection::linger() {
  ::shutdown(fd_, SHUT_WR);
  deadline_ = after(1);
  ssize_t got = 1;
  for (size_t all = 0; got > 0 && all < kMostUnread && wait(POLLIN);
       all += static_cast<size_t>(got))
    got = recv(fd_, buffer_, sizeof buffer_, 0);
}

bool Connection::is_gone() const {
  pollfd one{fd_, POLLRDHUP, 0};
  return !ended_ && poll(&one, 1, 0) > 0;
}

void Connection::end() {
  ended_ = true;
  ::shutdown(fd_, SHUT_RD);
}

int Server::listen_at(const std::string& host) {
  set_socket_options([](int fd) {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  int port = limits_.port;
  if (port == 0) port = bind_to_any_port(host);
  if (port != limits_.port ? port < 0 : !bind_to_port(host, port))
    throw Refusal(500, "cannot listen at {}:{}: {}", host, limits_.port, std::strerror(errno));
  ::listen(svr_sock_, 1024);  // more may wait than cpp-httplib says
  fcntl(svr_sock_, F_SETFL, O_NONBLOCK);
  return port;
}

void Server::accept_until(const std::atomic<bool>& stop) {
  while (!stop) {
    pollfd one{svr_sock_, POLLIN, 0};
    if (poll(&one, 1, 100) <= 0) continue;
    const int fd = accept4(svr_sock_, nullptr, nullptr, SOCK_CLOEXEC), yes = 1;
    if (fd < 0) {  // there may be too many open files
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ++count_;
    try {
      std::thread([this, fd] { serve(fd); }).detach();
    } catch (const std::system_error&) {  // or threads
      ::close(fd);
      --count_;
    }
  }
  ::close(svr_sock_);
}

void Server::serve(int fd) {
  auto mine = std::make_unique<Connection>(fd, limits_);
  connection = mine.get();
  std::unique_lock lock(mutex_);
  open_.insert(connection);
  lock.unlock();
  const size_t most = limits_.connections;
  const auto is_busy = [&] { return count_ > most - most / 4; };  // idle clients make room
  if (count_ > most) {
    connection->write(kBusy.data(), kBusy.size());
    if (connection->flush() && count_ < 2 * most) connection->linger();
  } else {
    while (!draining_ && connection->await_request(is_busy() ? 1 : limits_.idle_seconds)) {
      const bool is_answered = one_request(*connection) && connection->flush();
      if (is_answered && connection->keep) continue;
      if (is_answered) connection->linger();
      break;
    }
  }
  lock.lock();
  open_.erase(connection);
  mine.reset();
  --count_;
  closed_.notify_all();
}

bool Server::one_request(Connection& one) try {
  bool is_closed = false;
  const std::function<void(httplib::Request&)> setup = [](httplib::Request& request) {
    request.ranges.clear();  // a reply is whole
  };
  const auto process = [&](auto& self) {
    if constexpr (requires { self.process_request(one, "", 0, "", 0, false, is_closed, setup); })
      return self.process_request(one, "", 0, "", 0, false, is_closed, setup);  // newer versions
    else
      return self.process_request(one, false, is_closed, setup);
  };
  const bool is_answered = process(*this);
  one.keep = one.keep && !is_closed;
  return is_answered;
} catch (const std::exception&) {
  return false;
}

bool Server::drain(double seconds) {
  draining_ = true;
  std::unique_lock lock(mutex_);
  for (Connection* one : open_) one->end();
  return closed_.wait_until(lock, after(seconds), [&] { return count_ == 0; });
}

}  // namespace serve
