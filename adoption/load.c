/*
 * Requests to a proxy, and the server behind it, in one process: each request is a connection of its own, with the
 * headers of a browser; the answer has BYTES bytes.
 *
 *     load PROXY_PORT REQUESTS THREADS BYTES
 *
 * prints: requests answered in full, requests per second, the 50th and 99th percentile of a request in microseconds.
 * Exits with 1 unless all were answered in full. Loopback only. Clients come from 127.0.0.2: tinyproxy takes a client
 * whose address and port it has used itself in the last 15 seconds for a loop.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SERVERS = 128, STACK = 128 * 1024 };

static int listener, requests, bytes;
static struct sockaddr_in proxy, origin;
static uint32_t* took_us; /* of each request; 0: not answered in full */
static atomic_int next_request;

static uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int write_all(int fd, const char* p, size_t n) {
    while (n != 0) {
        ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
        if (done <= 0) return 0;
        p += done, n -= (size_t)done;
    }
    return 1;
}

static void* serve(void* body) {
    static const char head[] = "HTTP/1.0 200 OK\r\nServer: load\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
                               "Content-Type: text/html; charset=utf-8\r\nCache-Control: private, max-age=0\r\n"
                               "ETag: \"5e1-61a8\"\r\nLast-Modified: Sun, 31 Dec 2023 00:00:00 GMT\r\n"
                               "Vary: Accept-Encoding\r\nX-Frame-Options: SAMEORIGIN\r\nX-Request-Id: 0123456789abcdef\r\n"
                               "Set-Cookie: session=0123456789abcdef; Path=/; HttpOnly\r\nConnection: close\r\n\r\n";
    char in[16384];
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        size_t n = 0;
        if (fd < 0) return NULL;
        for (;;) {
            ssize_t got = recv(fd, in + n, sizeof in - 1 - n, 0);
            if (got <= 0) break;
            in[n += (size_t)got] = '\0';
            if (strstr(in, "\r\n\r\n") == NULL) continue;
            if (write_all(fd, head, sizeof head - 1)) (void)write_all(fd, body, (size_t)bytes);
            break;
        }
        shutdown(fd, SHUT_WR);
        while (recv(fd, in, sizeof in, 0) > 0) {}
        close(fd);
    }
}

static int ask(int i) {
    char text[2048], in[16384];
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
    size_t head = 0, got = 0;
    int n = snprintf(text, sizeof text,
                     "GET http://127.0.0.1:%d/orders/%d?page=1&size=50 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101\r\n"
                     "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
                     "Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\nDNT: 1\r\n"
                     "Referer: http://127.0.0.1/orders\r\nCookie: session=0123456789abcdef; theme=dark\r\n"
                     "Cache-Control: max-age=0\r\nX-Forwarded-For: 192.0.2.7\r\nConnection: close\r\n\r\n",
                     ntohs(origin.sin_port), i);
    int fd = socket(AF_INET, SOCK_STREAM, 0), whole = 0;
    if (fd < 0) return 0;
    if (bind(fd, (struct sockaddr*)&from, sizeof from) == 0 && connect(fd, (struct sockaddr*)&proxy, sizeof proxy) == 0 &&
        write_all(fd, text, (size_t)n)) {
        ssize_t more;
        while ((more = recv(fd, in + (head == 0 ? got : 0), head == 0 ? sizeof in - 1 - got : sizeof in, 0)) > 0) {
            got += (size_t)more;
            if (head != 0) continue;
            in[got] = '\0';
            char* end = strstr(in, "\r\n\r\n");
            if (end != NULL && strncmp(in, "HTTP/1", 6) == 0 && strstr(in, " 200 ") != NULL) head = (size_t)(end + 4 - in);
            if (head == 0 && got == sizeof in - 1) break;
        }
        whole = head != 0 && got == head + (size_t)bytes;
    }
    close(fd);
    return whole;
}

static void* client(void* unused) {
    for (int i; (i = atomic_fetch_add(&next_request, 1)) < requests;) {
        uint64_t start = now_us();
        if (ask(i)) took_us[i] = (uint32_t)(now_us() - start) + 1;
    }
    return unused;
}

static int by_size(const void* a, const void* b) {
    uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    if (argc != 5) return fprintf(stderr, "usage: load PROXY_PORT REQUESTS THREADS BYTES\n"), 2;
    int threads = atoi(argv[3]), failed = 0;
    requests = atoi(argv[2]), bytes = atoi(argv[4]);
    if (requests < 1 || threads < 1 || threads > SERVERS || bytes < 0) return 2;
    proxy = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    origin = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof origin;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr*)&origin, sizeof origin) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr*)&origin, &size) != 0)
        return perror("load"), 2;
    char* body = malloc((size_t)bytes + 1);
    took_us = calloc((size_t)requests, sizeof *took_us);
    if (body == NULL || took_us == NULL) return 2;
    memset(body, 'x', (size_t)bytes + 1);

    pthread_attr_t small;
    pthread_t ids[SERVERS];
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], &small, serve, body) != 0) return 2;
    uint64_t start = now_us();
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], &small, client, NULL) != 0) return 2;
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    double seconds = (double)(now_us() - start) / 1e6;
    for (int i = 0; i < requests; i++) failed += took_us[i] == 0;
    qsort(took_us, (size_t)requests, sizeof *took_us, by_size);
    printf("%d %.1f %u %u\n", requests - failed, requests / seconds, took_us[requests / 2], took_us[(size_t)requests * 99 / 100]);
    return failed != 0;
}
