package record

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// sameAsLibrary reads a chunk with both decoders.
func sameAsLibrary(t *testing.T, c *chunkenc.XOR2Chunk) (known bool) {
	t.Helper()
	got, known := appendXOR2([]point{{1, 2}}, c.Bytes())
	if !known {
		return false
	}
	got = got[1:]
	i := 0
	it := c.Iterator(nil)
	for ; it.Next() == chunkenc.ValFloat; i++ {
		at, v := it.At()
		if i >= len(got) || got[i].t != at || math.Float64bits(got[i].v) != math.Float64bits(v) {
			t.Fatalf("sample %d is %v, the library reads %d %v", i, got[min(i, len(got)-1)], at, v)
		}
	}
	if it.Err() == nil && i != len(got) {
		t.Fatalf("%d samples, the library reads %d", len(got), i)
	}
	return true
}

// TestDecodeAsLibrary writes chunks of all kinds with the library, and reads them back.
func TestDecodeAsLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 3000 {
		c := chunkenc.NewXOR2Chunk()
		a, err := c.Appender()
		if err != nil {
			t.Fatal(err)
		}
		var at int64
		v := 0.0
		if random.IntN(2) == 0 {
			at = random.Int64() - random.Int64()
		}
		sort := random.IntN(6)
		for range random.IntN(126) {
			switch random.IntN(40) {
			case 0:
				at += random.Int64N(3000)
			case 1:
				at += random.Int64N(400_000)
			case 2:
				at += random.Int64N(1 << 40)
			default:
				at += 1000
			}
			switch sort {
			case 0:
				v += float64(random.IntN(1e9))
			case 1:
				if random.IntN(30) == 0 {
					v++
				}
			case 2:
				v = math.Float64frombits(random.Uint64())
			case 3:
				v = random.Float64()
			case 4:
				v += float64(random.IntN(20)) / 100
			}
			if random.IntN(30) == 0 {
				a.Append(0, at, stale)
			} else {
				a.Append(0, at, v)
			}
		}
		if !sameAsLibrary(t, c) {
			t.Fatal("a chunk of the library is not known")
		}
	}
}

// FuzzDecode reads damaged chunks: what the decoder accepts must be what the library reads.
func FuzzDecode(f *testing.F) {
	c := chunkenc.NewXOR2Chunk()
	a, err := c.Appender()
	if err != nil {
		f.Fatal(err)
	}
	for i := range 40 {
		a.Append(0, int64(i*1000+i%7), float64(i*i))
	}
	f.Add(c.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 3 {
			if _, known := appendXOR2(nil, b); known {
				t.Fatal("known without a header")
			}
			return
		}
		c := chunkenc.NewXOR2Chunk()
		c.Reset(b)
		sameAsLibrary(t, c)
	})
}

// BenchmarkDecode compares the decoder with the iterator of the library, for a counter that grows
// each second and for one that does not.
func BenchmarkDecode(b *testing.B) {
	for name, grows := range map[string]float64{"busy": 1e6, "idle": 0} {
		random := rand.New(rand.NewPCG(1, 2))
		c := chunkenc.NewXOR2Chunk()
		a, err := c.Appender()
		if err != nil {
			b.Fatal(err)
		}
		v := 1e9
		for i := range chunkSamples {
			v += math.Floor(grows * random.Float64())
			a.Append(0, int64(i)*1000, v)
		}
		var to []point
		b.Run(name+"/own", func(b *testing.B) {
			for b.Loop() {
				to, _ = appendXOR2(to[:0], c.Bytes())
			}
		})
		b.Run(name+"/library", func(b *testing.B) {
			var it chunkenc.Iterator
			for b.Loop() {
				to = to[:0]
				for it = c.Iterator(it); it.Next() == chunkenc.ValFloat; {
					t, v := it.At()
					to = append(to, point{t, v})
				}
			}
		})
	}
}
