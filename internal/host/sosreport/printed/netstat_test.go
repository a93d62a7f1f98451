package printed

import "testing"

// TestParseNetstatOld has sentences of net-tools 1.60 (RHEL 5 and 6), with the figures of a host of
// Linux 2.4 in a mail to netdev.
func TestParseNetstatOld(t *testing.T) {
	equal(t, "net-tools 1.60", Counters{"TcpExt": {"TCPHPHits": 155925439, "TCPHPHitsToUser": 2054464,
		"TCPDirectCopyFromBacklog": 374684576, "TCPDirectCopyFromPrequeue": 1469444070, "ListenDrops": 8670444,
		"TCPPrequeued": 3087191}}, ParseNetstat(`TcpExt:
    8670444 SYNs to LISTEN sockets ignored
    3087191 packets directly queued to recvmsg prequeue.
    374684576 packets directly received from backlog
    1469444070 packets directly received from prequeue
    155925439 packets header predicted
    2054464 packets header predicted and directly queued to user
`))
}
