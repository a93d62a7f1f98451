package testenv

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePortsAreApart(t *testing.T) {
	first := FreePorts(t, 4)
	if second := FreePorts(t, 4); second < first+4 && first < second+4 {
		t.Errorf("four ports from %d and four from %d", first, second)
	}
	for network, listen := range map[string]func(address string) (interface{ Close() error }, error){
		"tcp": func(address string) (interface{ Close() error }, error) { return net.Listen("tcp", address) },
		"udp": func(address string) (interface{ Close() error }, error) { return net.ListenPacket("udp", address) },
	} {
		l, err := listen("127.0.0.1:" + strconv.Itoa(first))
		if err != nil {
			t.Fatal(err)
		}
		if !taken(first) {
			t.Errorf("port %d is free while a program listens with %s", first, network)
		}
		AwaitListener(t, first)
		_ = l.Close()
	}
}
