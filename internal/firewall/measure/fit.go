package measure

import "math"

const (
	// smallest is the time in nanoseconds from which on errors count by their share.
	smallest = 100
	// belief is the weight of a price as it was beside one case. It decides only what no case shows.
	belief = 1e-5
	// sweeps of the descent, which has converged long before.
	sweeps = 20_000
)

// fit returns the prices, none below zero, with which counts × prices come closest to the times, by
// the shares of their errors; each row of counts is one case. What the cases leave open stays near
// before.
func fit(counts [][]float64, times, before []float64) []float64 {
	n := len(before)
	// The normal equations, in units of the prices before, so that all unknowns are near 1.
	square := make([][]float64, n)
	right := make([]float64, n)
	for k := range square {
		square[k] = make([]float64, n)
		square[k][k], right[k] = belief, belief
	}
	for i, row := range counts {
		weight := 1 / math.Pow(max(times[i], smallest), 2)
		for k, a := range row {
			if a == 0 {
				continue
			}
			right[k] += weight * a * before[k] * times[i]
			for j, b := range row {
				square[k][j] += weight * a * before[k] * b * before[j]
			}
		}
	}
	x := make([]float64, n)
	for k := range x {
		x[k] = 1
	}
	for range sweeps {
		moved := 0.0
		for k := range x {
			rest := right[k]
			for j := range x {
				if j != k {
					rest -= square[k][j] * x[j]
				}
			}
			next := max(rest/square[k][k], 0)
			moved = max(moved, math.Abs(next-x[k]))
			x[k] = next
		}
		if moved < 1e-9 {
			break
		}
	}
	for k := range x {
		x[k] *= before[k]
	}
	return x
}
