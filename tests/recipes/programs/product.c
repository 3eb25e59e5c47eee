/* tests/recipes/programs/product.c -- runs `mm` of a module file, a product of matrices with 24 terms and 40
 * columns, and checks what comes out. */
#include <stdio.h>

#include "tec/tec.h"

enum { ROWS = 7, TERMS = 24, COLUMNS = 40 };
static float a[ROWS][TERMS], b[TERMS][COLUMNS], c[ROWS][COLUMNS];

static DLTensor matrix(void *data, int64_t *shape)
{
    return (DLTensor){
        .data = data, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}, .shape = shape};
}

static void fill(void)
{
    for (int i = 0; i < ROWS * TERMS; i++)
        a[0][i] = (float)(i % 9 - 4);
    for (int i = 0; i < TERMS * COLUMNS; i++)
        b[0][i] = (float)(i % 7 - 3);
}

static int check(void)
{
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++) {
            float sum = 0;

            for (int k = 0; k < TERMS; k++)
                sum += a[y][k] * b[k][x];
            if (c[y][x] != sum)
                return printf("mm[%d, %d] is %g, not %g\n", y, x, c[y][x], sum), 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    tec_error err = {0};
    tec_module *m = argc == 2 ? tec_module_open(argv[1], NULL, &err) : NULL;
    tec_function *f = m ? tec_function_new(m, "mm", NULL, &err) : NULL;
    int64_t shapes[3][2] = {{ROWS, TERMS}, {TERMS, COLUMNS}, {ROWS, COLUMNS}};
    DLTensor A = matrix(a, shapes[0]), B = matrix(b, shapes[1]), C = matrix(c, shapes[2]);

    fill();
    if (!f || !tec_function_call(f, (DLTensor *[]){&A, &B, &C}, 3, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    tec_function_free(f);
    tec_module_free(m);
    return check();
}
