// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"errors"
	"math"
	"slices"
)

var errSingular = errors.New("the columns depend on each other")

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// leastSquares solves the normal equations of columns that are scaled to length 1. It also returns the inverse of JᵀJ.
// It is meant for models with few columns.
func leastSquares(design [][]float64, y []float64) (b []float64, inverse [][]float64, err error) {
	p := len(design[0])
	length := make([]float64, p)
	for _, row := range design {
		for j, v := range row {
			length[j] = math.Hypot(length[j], v)
		}
	}
	work := make([][]float64, p) // JᵀJ next to the unit matrix
	right := make([]float64, p)
	for j := range work {
		if length[j] == 0 || !isFinite(length[j]) {
			return nil, nil, errSingular
		}
		work[j] = make([]float64, 2*p)
		work[j][p+j] = 1
	}
	for i, row := range design {
		for j := range p {
			right[j] += row[j] / length[j] * y[i]
			for k := range p {
				work[j][k] += row[j] / length[j] * row[k] / length[k]
			}
		}
	}
	if err := invert(work); err != nil {
		return nil, nil, err
	}
	b, inverse = make([]float64, p), make([][]float64, p)
	for j := range p {
		b[j] = dot(work[j][p:], right) / length[j]
		inverse[j] = make([]float64, p)
		for k := range p {
			inverse[j][k] = work[j][p+k] / length[j] / length[k]
		}
	}
	return b, inverse, nil
}

// invert performs Gauss-Jordan elimination with pivots, in place.
func invert(work [][]float64) error {
	for j := range work {
		pivot := j
		for i := j + 1; i < len(work); i++ {
			if math.Abs(work[i][j]) > math.Abs(work[pivot][j]) {
				pivot = i
			}
		}
		if math.Abs(work[pivot][j]) < 1e-11 { // for columns of length 1
			return errSingular
		}
		work[j], work[pivot] = work[pivot], work[j]
		scale := work[j][j]
		for k := range work[j] {
			work[j][k] /= scale
		}
		for i := range work {
			if f := work[i][j]; i != j && f != 0 {
				for k := range work[i] {
					work[i][k] -= f * work[j][k]
				}
			}
		}
	}
	return nil
}

// outside reports whether a point is outside the convex hull of others. It is the triangle algorithm (Kalantari, Annals
// of Operations Research 226, 2015). A point of the hull moves towards the given point until it reaches it. Or the
// plane between them has all other points on its far side, which proves that the point is outside. Within a thousandth
// of the range from the border, it counts as inside.
func outside(points [][]float64, at []float64) bool {
	q, near := make([]float64, len(at)), make([]float64, len(at))
	cloud := make([][]float64, len(points))
	for i := range points {
		cloud[i] = make([]float64, len(at))
	}
	for j := range at {
		low, high := points[0][j], points[0][j]
		for _, p := range points {
			low, high = min(low, p[j]), max(high, p[j])
		}
		if at[j] < low || at[j] > high {
			return true
		}
		for i, p := range points {
			cloud[i][j] = position(p[j], low, high)
		}
		q[j] = position(at[j], low, high)
	}
	copy(near, cloud[0])
	const close = 1e-3
	for range 2000 {
		way := make([]float64, len(q))
		for j := range q {
			way[j] = q[j] - near[j]
		}
		if dot(way, way) <= close*close {
			return false
		}
		farthest := slices.MaxFunc(cloud, func(a, b []float64) int {
			if dot(a, way) < dot(b, way) {
				return -1
			}
			return 1
		})
		if dot(farthest, way) < dot(q, way)-close*math.Sqrt(dot(way, way)) {
			return true
		}
		edge := make([]float64, len(q))
		for j := range q {
			edge[j] = farthest[j] - near[j]
		}
		step := min(1, dot(way, edge)/dot(edge, edge))
		for j := range near {
			near[j] += step * edge[j]
		}
	}
	return false // on the border, within the precision
}

// position scales a value to its position between two others. It halves first because the range may overflow.
func position(v, low, high float64) float64 {
	if low == high {
		return 0
	}
	return (v/2 - low/2) / (high/2 - low/2)
}
