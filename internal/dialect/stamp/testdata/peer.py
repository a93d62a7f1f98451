"""A STAMP and TWAMP Light peer, written from RFC 8762, RFC 8972 and RFC 5357 alone, for the tests next door.

  peer.py reflect MODE [KEYHEX] [--stateless] [--drop-up N] [--drop-down N] [--clock NANOS] [--sync] [--port P]
      prints the port it listens on and reflects until its standard input ends
  peer.py send MODE HOST PORT COUNT [KEYHEX] [--size N] [--ptp] [--tlv HEX] [--timeout SECONDS]
      sends COUNT packets, one after the answer to the other, and prints what came back, one line of JSON each

MODE: light (TWAMP Light without padding: 14 bytes up, 38 down) | light41 | open | auth
"""
import hashlib, hmac, json, select, socket, struct, sys, time

EPOCH = 2208988800


def option(name, default=None):
    if name not in sys.argv:
        return default
    i = sys.argv.index(name)
    return sys.argv[i + 1]


def ntp(nanos):
    s, n = divmod(nanos, 10**9)
    return struct.pack("!II", (s + EPOCH) & 0xFFFFFFFF, (n << 32) // 10**9)


def ptp(nanos):
    s, n = divmod(nanos, 10**9)
    return struct.pack("!II", s & 0xFFFFFFFF, n)


def unntp(b):
    s, f = struct.unpack("!II", b)
    return (s - EPOCH) * 10**9 + (f * 10**9 >> 32)


def unptp(b):
    s, n = struct.unpack("!II", b)
    return s * 10**9 + n


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()[:16]


def reflect(mode, key):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", int(option("--port", "0"))))
    print(s.getsockname()[1], flush=True)
    shift = int(option("--clock", "0"))
    up, down = int(option("--drop-up", "0")), int(option("--drop-down", "0"))
    estimate = 0x8001 if "--sync" in sys.argv else 0x0001
    arrived = counted = 0
    while True:
        ready, _, _ = select.select([s, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        p, peer = s.recvfrom(65536)
        t2 = time.time_ns() + shift
        arrived += 1
        if up and arrived % up == 0:
            continue
        seq = struct.unpack("!I", p[:4])[0]
        if mode == "auth":
            if len(p) < 112 or mac(key, p[:96]) != p[96:112]:
                continue
            own = seq if "--stateless" in sys.argv else counted
            r = struct.pack("!I", own) + bytes(12) + ntp(time.time_ns() + shift) + struct.pack("!H", estimate) + p[26:28] + bytes(4)
            r += ntp(t2) + bytes(8) + p[:4] + bytes(12) + p[16:24] + p[24:26] + bytes(6) + bytes([64]) + bytes(15)
            assert len(r) == 96
            r += mac(key, r)
        else:
            own = seq if "--stateless" in sys.argv else counted
            r = struct.pack("!I", own) + ntp(time.time_ns() + shift) + struct.pack("!H", estimate)
            r += (p[14:16] if mode == "open" else bytes(2)) + ntp(t2) + p[:4] + p[4:12] + p[12:14] + bytes(2)
            assert len(r) == 40
            r = {"light": r[:38], "light41": r + bytes([64]), "open": r + bytes([64]) + bytes(3)}[mode]
        counted += 1
        base = 112 if mode == "auth" else 44
        r += p[base:]  # symmetrical: padding and TLVs come back
        if down and counted % down == 0:
            continue
        s.sendto(r, peer)


def send(mode, host, port, count, key):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(float(option("--timeout", "5")))
    s.connect((host, port))
    stamp, unstamp, estimate = ntp, unntp, 0x8001
    if "--ptp" in sys.argv:
        stamp, unstamp, estimate = ptp, unptp, 0xC001
    size, tlv = int(option("--size", "0")), bytes.fromhex(option("--tlv", ""))
    for seq in range(count):
        t1 = time.time_ns()
        if mode == "auth":
            p = struct.pack("!I", seq) + bytes(12) + stamp(t1) + struct.pack("!HH", estimate, 4711) + bytes(68)
            p += mac(key, p)
        else:
            p = struct.pack("!I", seq) + stamp(t1) + struct.pack("!H", estimate)
            if mode == "open":
                p += struct.pack("!H", 4711) + bytes(28)
        if tlv and mode == "auth":
            tlv_mac = bytes([0x80, 8, 0, 16]) + mac(key, p[:4] + tlv)
            p += tlv + tlv_mac
        else:
            p += tlv
        p += bytes(max(0, size - len(p)))
        s.send(p)
        try:
            r = s.recv(65536)
        except (TimeoutError, ConnectionRefusedError) as e:
            print(json.dumps({"sent": len(p), "error": str(e)}), flush=True)
            continue
        t4 = time.time_ns()
        d = {"sent": len(p), "bytes": len(r), "seq": struct.unpack("!I", r[:4])[0], "hex": r.hex(), "request": p.hex()}
        if mode == "auth":
            e, d["ssid"] = struct.unpack("!HH", r[24:28])
            t3, t2, d["sender"], echo, ttl = r[16:24], r[32:40], struct.unpack("!I", r[48:52])[0], r[64:74], r[80:81]
            d["mac"] = len(r) >= 112 and mac(key, r[:96]) == r[96:112]
            d["zero"] = not any(r[4:16] + r[28:32] + r[40:48] + r[52:64] + r[74:80] + r[81:96])
            d["echo"] = echo == p[16:26]
            if tlv:
                d["tlv_mac"] = r[-16:] == mac(key, r[:4] + r[112:-20])
        else:
            e, d["ssid"] = struct.unpack("!HH", r[12:16])
            t3, t2, d["sender"], echo, ttl = r[4:12], r[16:24], struct.unpack("!I", r[24:28])[0], r[28:38], r[40:41]
            d["zero"] = not any(r[38:40] + r[41:44])
            d["echo"] = echo == p[4:14]
        d["ttl"] = ttl[0] if ttl else None
        d["z"], d["multiplier"] = bool(e & 0x4000), e & 0xFF
        t2, t3 = unstamp(t2), unstamp(t3)
        # 1 ms: PTP may count TAI, and NTP's fraction is cut on both sides
        d["order"] = t2 <= t3 and (abs(t2 - t1) < 5 * 10**9 or 36 * 10**9 < t2 - t1 < 42 * 10**9)
        d["rtt"] = (t4 - t1) - (t3 - t2)
        print(json.dumps(d), flush=True)


def main():
    plain = [a for i, a in enumerate(sys.argv[1:], 1) if not a.startswith("--") and (not sys.argv[i - 1].startswith("--") or sys.argv[i - 1] in ("--stateless", "--sync", "--ptp"))]
    what, mode = plain[0], plain[1]
    if what == "reflect":
        reflect(mode, bytes.fromhex(plain[2]) if len(plain) > 2 else b"")
    else:
        send(mode, plain[2], int(plain[3]), int(plain[4]), bytes.fromhex(plain[5]) if len(plain) > 5 else b"")


main()
