"""The argument dump: SGLang's defaults (fields of 0.5.6), with what the command line sets."""

FIELDS = """
model_path='' tokenizer_path='' tokenizer_mode='auto' tokenizer_worker_num=1 skip_tokenizer_init=False
load_format='auto' model_loader_extra_config='{}' trust_remote_code=False context_length=None is_embedding=False
enable_multimodal=None revision=None model_impl='auto' host='127.0.0.1' port=30000 grpc_mode=False
skip_server_warmup=False warmups=None nccl_port=None checkpoint_engine_wait_weights_before_ready=False dtype='auto'
quantization=None kv_cache_dtype='auto' mem_fraction_static=0.83 max_running_requests=48 max_queued_requests=None
max_total_tokens=None chunked_prefill_size=8192 max_prefill_tokens=16384 schedule_policy='fcfs'
schedule_conservativeness=1.0 page_size=None radix_eviction_policy='lru' device='cuda' tp_size=1 pp_size=1
pp_max_micro_batch_size=None stream_interval=1 stream_output=False random_seed=481516234 watchdog_timeout=300
dist_timeout=None download_dir=None base_gpu_id=0 gpu_id_step=1 sleep_on_idle=False log_level='info'
log_level_http=None log_requests=False log_requests_level=2 crash_dump_folder=None show_time_cost=False
enable_metrics=False decode_log_interval=40 enable_trace=False api_key=None served_model_name=''
weight_version='default' chat_template=None reasoning_parser=None tool_call_parser=None dp_size=1
load_balance_method='round_robin' dist_init_addr=None nnodes=1 node_rank=0 json_model_override_args='{}'
enable_lora=None attention_backend='flashinfer' decode_attention_backend=None prefill_attention_backend=None
sampling_backend='flashinfer' grammar_backend='xgrammar' speculative_algorithm=None
speculative_draft_model_path=None speculative_draft_model_revision=None speculative_draft_load_format=None
speculative_num_steps=None speculative_eagle_topk=None speculative_num_draft_tokens=None
speculative_accept_threshold_single=1.0 speculative_accept_threshold_acc=1.0 speculative_token_map=None
speculative_attention_mode='prefill' ep_size=1 moe_a2a_backend='none' moe_runner_backend='auto'
enable_hierarchical_cache=False cpu_offload_gb=0 disable_radix_cache=False cuda_graph_max_bs=160
disable_cuda_graph=False disable_cuda_graph_padding=False enable_nccl_nvls=False enable_symm_mem=False
disable_custom_all_reduce=False disable_overlap_schedule=False enable_dp_attention=False
enable_two_batch_overlap=False enable_torch_compile=False enable_piecewise_cuda_graph=False torch_compile_max_bs=32
num_continuous_decode_steps=1 delete_ckpt_after_loading=False enable_memory_saver=False scheduler_recv_interval=1
numa_node=None enable_deterministic_inference=False disaggregation_mode='null'
disaggregation_transfer_backend='mooncake' disaggregation_bootstrap_port=8998 enable_pdmux=False
mm_max_concurrent_calls=32 mm_per_request_timeout=10.0
"""


class ServerArgs:
    """All arguments, resolved; its text is SGLang's line."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields
        self.host = fields["host"].strip("'")
        self.port = int(fields["port"])

    @classmethod
    def from_argv(cls, argv: list[str]) -> "ServerArgs":
        """Defaults, then `--name value` pairs and switches."""
        fields = dict(field.split("=", 1) for field in FIELDS.split())
        for word, follower in zip(argv, [*argv[1:], "--"], strict=True):
            if word.startswith("--"):
                value = "True" if follower.startswith("--") else follower
                number = value.replace(".", "", 1).isdigit() or value == "True"
                fields[word[2:].replace("-", "_")] = value if number else repr(value)
        fields["tokenizer_path"] = fields["served_model_name"] = fields["model_path"]
        return cls(fields)

    def __str__(self) -> str:
        return f"ServerArgs({', '.join(f'{name}={value}' for name, value in self.fields.items())})"
