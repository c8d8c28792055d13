#ifdef __cplusplus
}
#endif

#endif /* PSHMEM_H */
