package durable_test

import (
	"fmt"

	"github.com/linerate/linerate/internal/base/durable"
)

// A log in memory keeps what Append has returned for, also when power is lost right after.
func ExampleOpenLog() {
	disk := durable.NewMem()
	log, _, err := durable.OpenLog(disk, "/changes.log")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(log.Append([]byte("intent: mtu 1500 to 9000")))
	_ = log.Close() // an Example shows what survives without it, too

	records, torn, err := durable.ReadLog(disk, "/changes.log")
	fmt.Printf("%s, %d bytes torn, %v\n", records[0], torn, err)
	// Output:
	// <nil>
	// intent: mtu 1500 to 9000, 0 bytes torn, <nil>
}
