/*
 * Loaded before libc (LD_PRELOAD), so that writes to the files of one folder do only a part of what they are asked, as POSIX allows: the
 * first half. LCM_SHORT_FOLDER names the folder, LCM_SHORT_FROM the first write that is cut short, LCM_SHORT_STEP how many there are from
 * one to the next. Nothing fails: whoever writes has to write the rest. Each cut is noted by one byte in LCM_SHORT_NOTE.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls;

static int in_folder(int fd) {
  const char *folder = getenv("LCM_SHORT_FOLDER");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (folder == NULL || size < 0) return 0;
  path[size] = 0;
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static void note(void) {
  static ssize_t (*real)(int, const void *, size_t);
  const char *path = getenv("LCM_SHORT_NOTE");
  if (path == NULL) return;
  if (real == NULL) real = dlsym(RTLD_NEXT, "write");
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (real(fd, ".", 1) < 0) abort();
  close(fd);
}

/* How many of the bytes are written by this call. */
static size_t cut(int fd, size_t size) {
  if (size < 2 || !in_folder(fd)) return size;
  const char *from = getenv("LCM_SHORT_FROM"), *step = getenv("LCM_SHORT_STEP");
  long at = __sync_add_and_fetch(&calls, 1) - (from == NULL ? 1 : atol(from));
  if (at < 0 || at % (step == NULL ? 1 : atol(step)) != 0) return size;
  note();
  return size / 2;
}

ssize_t write(int fd, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (real == NULL) real = dlsym(RTLD_NEXT, "write");
  return real(fd, data, cut(fd, size));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  static ssize_t (*real)(int, const void *, size_t, off_t);
  if (real == NULL) real = dlsym(RTLD_NEXT, "pwrite");
  return real(fd, data, cut(fd, size), at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (real == NULL) real = dlsym(RTLD_NEXT, "pwrite64");
  return real(fd, data, cut(fd, size), at);
}

/* Several pieces in one call: only the first of them, or a part of it. */
ssize_t writev(int fd, const struct iovec *pieces, int count) {
  static ssize_t (*real)(int, const struct iovec *, int);
  if (real == NULL) real = dlsym(RTLD_NEXT, "writev");
  if (count < 1 || cut(fd, pieces[0].iov_len) == pieces[0].iov_len) return real(fd, pieces, count);
  struct iovec part = {pieces[0].iov_base, pieces[0].iov_len / 2};
  return real(fd, &part, 1);
}

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t at) {
  static ssize_t (*real)(int, const struct iovec *, int, off_t);
  if (real == NULL) real = dlsym(RTLD_NEXT, "pwritev");
  if (count < 1 || cut(fd, pieces[0].iov_len) == pieces[0].iov_len) return real(fd, pieces, count, at);
  struct iovec part = {pieces[0].iov_base, pieces[0].iov_len / 2};
  return real(fd, &part, 1, at);
}
