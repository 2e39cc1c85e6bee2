/*
 * nghttp2.c - clients and servers of HTTP/2 that talk to each other in memory, requests with bodies both ways, pushes, cancelled streams,
 * and header compression by itself. A phase is a connection's end; one is deleted by hand, one ends with streams that are open.
 */
#include <temporal_slab/nghttp2.h>

#include "adapters/adapter.h"

#include <stdint.h>

static const unsigned long adapter_least = 15000;
enum { REQUESTS = 400, BODY = 3000, BATCH = 20 };

static void adapter_install(SlabAllocator* a) { (void)a; }
static void adapter_remove(SlabAllocator* a) { (void)a; }

/* ---- one end of a connection ---- */

typedef struct Body {
    uint32_t left, seed;
} Body;

typedef struct End {
    const char* name;
    Text* out;
    nghttp2_session* session;
    Body bodies[2 * REQUESTS + 3]; /* by stream */
    unsigned answered, opened;
} End;

static nghttp2_nv pair(const char* name, const char* value) {
    nghttp2_nv nv = {(uint8_t*)(uintptr_t)name, (uint8_t*)(uintptr_t)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
    return nv;
}

static ssize_t read_body(nghttp2_session* session, int32_t stream, uint8_t* to, size_t room, uint32_t* flags, nghttp2_data_source* source,
                         void* end) {
    Body* body = source->ptr;
    size_t n = body->left < room ? body->left : room;
    (void)session, (void)stream, (void)end;
    for (size_t i = 0; i < n; i++) to[i] = (uint8_t)('a' + (body->seed = body->seed * 1103515245 + 12345) % 26);
    body->left -= (uint32_t)n;
    if (body->left == 0) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_data_provider body_of(End* end, int32_t stream, uint32_t bytes) {
    nghttp2_data_provider provider;
    end->bodies[stream] = (Body){bytes, (uint32_t)stream};
    provider.source.ptr = &end->bodies[stream];
    provider.read_callback = read_body;
    return provider;
}

static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name, size_t name_size, const uint8_t* value,
                     size_t value_size, uint8_t flags, void* of) {
    End* end = of;
    (void)session, (void)flags;
    text_format(end->out, "%s %d %.*s: %.*s\n", end->name, frame->hd.stream_id, (int)name_size, (const char*)name, (int)value_size,
                (const char*)value);
    return 0;
}

static int on_data(nghttp2_session* session, uint8_t flags, int32_t stream, const uint8_t* data, size_t n, void* of) {
    End* end = of;
    (void)session, (void)flags;
    text_format(end->out, "%s %d data %zu: ", end->name, stream, n);
    text_add(end->out, data, n);
    text_add(end->out, "\n", 1);
    return 0;
}

static int on_close(nghttp2_session* session, int32_t stream, uint32_t error, void* of) {
    End* end = of;
    (void)session;
    text_format(end->out, "%s %d closed %u\n", end->name, stream, error);
    end->answered++;
    return 0;
}

/* The server answers a request that is complete; every tenth with a refusal, some are left without an answer. */
static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* of) {
    End* end = of;
    int32_t stream = frame->hd.stream_id;
    bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    text_format(end->out, "%s %d frame %d flags %d length %zu\n", end->name, stream, frame->hd.type, frame->hd.flags, frame->hd.length);
    if (end->name[0] != 's' || !ends || stream > 2 * REQUESTS - 7) return 0;
    char number[30], cookie[300];
    (void)snprintf(number, sizeof number, "%d", stream * 77);
    memset(cookie, 'a' + stream % 26, sizeof cookie);
    cookie[sizeof cookie - 1] = 0;
    nghttp2_nv nv[] = {pair(":status", stream % 5 == 0 ? "404" : "200"), pair("x-number", number), pair("set-cookie", cookie), pair("server", "test")};
    nghttp2_data_provider body = body_of(end, stream, (uint32_t)(BODY * (1 + stream % 7)));
    if (stream % 10 == 9) return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_REFUSED_STREAM);
    return nghttp2_submit_response(session, stream, nv, 4, &body);
}

static int open_end(End* end, const char* name, Text* out, epoch_domain_t* d) {
    nghttp2_mem mem = tslab_nghttp2_mem(d);
    nghttp2_session_callbacks* callbacks;
    memset(end, 0, sizeof *end);
    end->name = name;
    end->out = out;
    REQUIRE(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    int status = name[0] == 's' ? nghttp2_session_server_new3(&end->session, callbacks, end, NULL, d != NULL ? &mem : NULL)
                                : nghttp2_session_client_new3(&end->session, callbacks, end, NULL, d != NULL ? &mem : NULL);
    nghttp2_session_callbacks_del(callbacks);
    return status;
}

/* 0: nothing to say any more; 1: something was said; else an error. */
static int carry(End* from, End* to) {
    const uint8_t* bytes;
    ssize_t n = nghttp2_session_mem_send(from->session, &bytes);
    if (n <= 0) return (int)n;
    ssize_t taken = nghttp2_session_mem_recv(to->session, bytes, (size_t)n);
    return taken < 0 ? (int)taken : 1;
}

static int talk(End* client, End* server) {
    int to, back;
    do {
        to = carry(client, server);
        back = carry(server, client);
    } while (to >= 0 && back >= 0 && to + back != 0);
    return to < 0 ? to : back < 0 ? back : 0;
}

static int ask(End* client) {
    unsigned n = client->opened++;
    char path[60], agent[100];
    (void)snprintf(path, sizeof path, "/a/path/%u?of=%u", n % 50, n);
    (void)snprintf(agent, sizeof agent, "a client that says of itself that it is number %u", n % 9);
    nghttp2_nv nv[] = {pair(":method", n % 3 == 0 ? "POST" : "GET"), pair(":scheme", "https"), pair(":path", path),
                       pair(":authority", "localhost"), pair("user-agent", agent), pair("accept", "*/*")};
    nghttp2_data_provider body = body_of(client, (int32_t)(2 * n + 1), 500 + n);
    int32_t stream = nghttp2_submit_request(client->session, NULL, nv, 6, n % 3 == 0 ? &body : NULL, NULL);
    if (stream > 0 && n % 31 == 30) return nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    return stream < 0 ? stream : 0;
}

/* 0, or an error of nghttp2. Streams that the server does not answer are open at the end. */
static int converse(End* client, End* server) {
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 40000},
                                         {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 8000}};
    int status = nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings, 3);
    if (status == 0) status = nghttp2_submit_settings(server->session, NGHTTP2_FLAG_NONE, settings, 3);
    while (status == 0 && client->opened < REQUESTS) {
        for (int n = 0; status == 0 && n < BATCH; n++) status = ask(client);
        if (status == 0) status = nghttp2_submit_ping(client->session, NGHTTP2_FLAG_NONE, NULL);
        if (status == 0) status = talk(client, server);
    }
    return status;
}

/* ---- header compression ---- */

static void compress(Text* out, epoch_domain_t* d) {
    nghttp2_mem mem = tslab_nghttp2_mem(d);
    nghttp2_hd_deflater* deflater;
    nghttp2_hd_inflater* inflater;
    REQUIRE(nghttp2_hd_deflate_new2(&deflater, 4096, d != NULL ? &mem : NULL) == 0);
    REQUIRE(nghttp2_hd_inflate_new2(&inflater, d != NULL ? &mem : NULL) == 0);
    for (int n = 0; n < 3000; n++) {
        char name[30], value[60];
        uint8_t bytes[1000];
        (void)snprintf(name, sizeof name, "x-header-%d", n % 90);
        (void)snprintf(value, sizeof value, "the value %d of %d", n % 7, n % 400);
        nghttp2_nv nv[] = {pair(":path", value), pair(name, value), pair("cookie", name)};
        ssize_t size = nghttp2_hd_deflate_hd(deflater, bytes, sizeof bytes, nv, 3);
        REQUIRE(size > 0);
        text_add(out, bytes, (size_t)size);
        for (ssize_t at = 0; at < size;) {
            nghttp2_nv got;
            int flags = 0;
            ssize_t used = nghttp2_hd_inflate_hd2(inflater, &got, &flags, bytes + at, (size_t)(size - at), 1);
            REQUIRE(used >= 0);
            at += used;
            if (flags & NGHTTP2_HD_INFLATE_EMIT) text_format(out, "%s=%s\n", (char*)got.name, (char*)got.value);
        }
        REQUIRE(nghttp2_hd_inflate_end_headers(inflater) == 0);
        if (n == 1500)
            REQUIRE(nghttp2_hd_deflate_change_table_size(deflater, 1000) == 0 &&
                    nghttp2_hd_inflate_change_table_size(inflater, 1000) == 0);
    }
    nghttp2_hd_deflate_del(deflater);
    nghttp2_hd_inflate_del(inflater);
}

/* ---- runs ---- */

static void adapter_run(Text* out, SlabAllocator* a) {
    static End client, server;
    epoch_domain_t* here = adapter_create(a, "client");
    epoch_domain_t* there = adapter_create(a, "server");
    REQUIRE(open_end(&client, "client", out, here) == 0 && open_end(&server, "server", out, there) == 0);
    REQUIRE(converse(&client, &server) == 0);
    REQUIRE(client.answered > REQUESTS / 2 && client.answered < REQUESTS);
    text_format(out, "%u %u\n", client.answered, server.answered);
    Text unheard = {NULL, 0, 0};
    client.out = server.out = &unheard; /* what is told of streams that deletion closes */
    nghttp2_session_del(client.session);
    if (a == NULL) nghttp2_session_del(server.session);
    free(unheard.bytes);
    REQUIRE(adapter_end(here).objects_released == 0);
    REQUIRE(adapter_end(there).objects_released > 10 ||
            a == NULL); /* the session itself, its tables, its open streams */

    epoch_domain_t* d = adapter_create(a, "headers");
    compress(out, d);
    REQUIRE(adapter_end(d).objects_released == 0);
}

static void adapter_starve(SlabAllocator* a) {
    static End client, server;
    unsigned refused = 0, done = 0;
    REQUIRE(open_end(&client, "client", NULL, NULL) == 0); /* malloc's, for the comparison below */
    nghttp2_session_del(client.session);
    nghttp2_mem nowhere = tslab_nghttp2_mem(NULL);
    REQUIRE(nowhere.malloc(1, nowhere.mem_user_data) == NULL && nowhere.calloc(0, 0, NULL) == NULL &&
            nowhere.realloc(NULL, 1, NULL) == NULL);
    epoch_domain_t* d = adapter_create(a, "nothing"); /* of 0 bytes there is an object, as with malloc */
    nghttp2_mem mem = tslab_nghttp2_mem(d);
    void* of_nothing[] = {mem.malloc(0, d), mem.calloc(0, 8, d), mem.calloc(8, 0, d), mem.realloc(NULL, 0, d)};
    for (int i = 0; i < 4; i++) {
        REQUIRE(of_nothing[i] != NULL && (i == 0 || of_nothing[i] != of_nothing[i - 1]));
        mem.free(of_nothing[i], d);
    }
    mem.free(NULL, d);
    REQUIRE(adapter_end(d).objects_freed == 4);
    for (size_t budget = 4096; budget <= 16 << 20; budget *= 2) {
        Text out = {NULL, 0, 0};
        d = adapter_create(a, "hungry connection");
        REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, budget, NULL, NULL));
        int status = open_end(&client, "client", &out, d);
        int other = open_end(&server, "server", &out, d);
        if (status == 0 && other == 0) status = converse(&client, &server);
        /* the second: a function of ours that was called found no memory for its answer */
        REQUIRE(status == 0 || status == NGHTTP2_ERR_NOMEM || status == NGHTTP2_ERR_CALLBACK_FAILURE);
        *(status == 0 && other == 0 ? &done : &refused) += 1;
        if (client.session != NULL) nghttp2_session_del(client.session);
        if (server.session != NULL) nghttp2_session_del(server.session);
        (void)adapter_end(d);
        free(out.bytes);
    }
    REQUIRE(refused >= 3 && done >= 1);
}
