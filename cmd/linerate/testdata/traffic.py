# Production traffic for fleet.sh: `sink ADDRESS PORT` reads what arrives, `source ADDRESS PORT` sends
# over one new connection after the other. `wire NUMBER MILLISECONDS` makes two network devices, pN and qN,
# and carries frames between them, those from qN with a delay: not every kernel has netem.
import collections, fcntl, os, socket, struct, sys, threading, time


def tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x0002 | 0x1000))  # TUNSETIFF, IFF_TAP | IFF_NO_PI
    return fd


def wire(number, delay):
    near, far = tap("p" + number), tap("q" + number)
    queue, ready = collections.deque(), threading.Semaphore(0)

    def read():
        while True:
            queue.append((time.monotonic() + delay, os.read(far, 1 << 16)))
            ready.release()

    def back():
        while True:
            frame = os.read(near, 1 << 16)
            try:
                os.write(far, frame)
            except OSError:
                pass  # the other device is not up yet

    threading.Thread(target=read, daemon=True).start()
    threading.Thread(target=back, daemon=True).start()
    print("wired", flush=True)
    while True:
        ready.acquire()
        due, frame = queue.popleft()
        time.sleep(max(0, due - time.monotonic()))
        try:
            os.write(near, frame)
        except OSError:
            pass


if sys.argv[1] == "wire":
    wire(sys.argv[2], int(sys.argv[3]) / 1000)
role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
if role == "sink":
    server = socket.create_server((address, port), backlog=64)

    def read(c):
        try:
            while c.recv(1 << 16):
                pass
        except OSError:
            pass
        c.close()

    while True:
        c, _ = server.accept()
        threading.Thread(target=read, args=(c,), daemon=True).start()
data = bytes(1 << 13)
while True:
    try:
        with socket.create_connection((address, port), timeout=5) as c:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                c.sendall(data)
                time.sleep(0.004)
    except OSError:
        time.sleep(0.2)
