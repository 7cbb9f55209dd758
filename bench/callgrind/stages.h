/* stages.h: the stages that have to do with text, for stages.c. */
#ifndef STAGES_H
#define STAGES_H

#include "run.h"

typedef struct {
  const char *name;
  void (*make)(void); /* makes the input; not counted */
  void (*run)(void);
} stage;

enum { N_TEXTS = 20000, N_DISTINCT = 500 };
extern run_text RANGE_NAMES[N_TEXTS]; /* of make_names */

void make_pages(void);
void pages(void);
void make_table(void);
void scan(void);
void make_names(void);
void names(void);
void make_rows(void);
void rows(void);
void make_dict_lines(void);
void dict(void);
void make_events(void);
void kineto(void);

#endif
